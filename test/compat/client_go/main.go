// A greeter on controller-runtime and client-go, and a session with the plain clients.
//
//	greeter operator   for each Greeting a ConfigMap that says its text, an Event, and a farewell
//	greeter session    a round of calls with client-go's own clients; exit code 1 at the first wrong answer
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	manager   = "greeter-client-go"
	finalizer = "compat.example.com/farewell"
)

func main() {
	ctrl.SetLogger(klog.Background())
	run, known := map[string]func(context.Context) error{
		"operator": runOperator,
		"session":  runSession,
	}[firstArgument()]
	if !known {
		fmt.Fprintln(os.Stderr, "usage: greeter operator|session")
		os.Exit(2)
	}
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func firstArgument() string {
	if len(os.Args) != 2 {
		return ""
	}
	return os.Args[1]
}
