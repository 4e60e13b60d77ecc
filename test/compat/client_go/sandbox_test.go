package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
)

// startSandbox runs a sandbox for one test, and points $KUBECONFIG to it.
func startSandbox(t *testing.T, manifests ...string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	arguments := []string{"-m", "kubeloop.sandbox", "--tls", "--ready-after=0.1", "--kubeconfig=" + kubeconfig}
	for _, file := range manifests {
		arguments = append(arguments, "--apply="+file)
	}
	sandbox := exec.Command("python3", arguments...)
	sandbox.Stderr = os.Stderr
	output, err := sandbox.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sandbox.Process.Signal(os.Interrupt)
		sandbox.Wait()
	})
	// It is ready when it says where it listens.
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || !strings.Contains(line, "listens on") {
		t.Fatalf("the sandbox did not start: %q, %v", line, err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
}

func TestAGreetingIsSaid(t *testing.T) {
	startSandbox(t, "../greetings.yaml")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan error)
	operating, stop := context.WithCancel(ctx)
	go func() { stopped <- runOperator(operating) }()

	client := kubernetes.NewForConfigOrDie(ctrl.GetConfigOrDie())
	greeting := `{"apiVersion":"compat.example.com/v1","kind":"Greeting","metadata":{"name":"hello"},
		"spec":{"text":"good morning"}}`
	path := "/apis/compat.example.com/v1/namespaces/default/greetings"
	if err := client.RESTClient().Post().AbsPath(path).Body([]byte(greeting)).Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
	watching, err := client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if said, ok := event.Object.(*corev1.ConfigMap); ok && said.Data["text"] == "good morning" {
			break
		}
	}
	if ctx.Err() != nil {
		t.Error("the operator said nothing within a minute")
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
