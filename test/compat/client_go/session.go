package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
)

const patience = 20 * time.Second

type clients struct {
	config  *rest.Config
	typed   *kubernetes.Clientset // asks for protobuf, takes JSON
	dynamic *dynamic.DynamicClient
}

func runSession(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	inProtobuf := rest.CopyConfig(config)
	inProtobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(inProtobuf)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c := &clients{config: config, typed: typed, dynamic: untyped}
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"discovery", c.discovery},
		{"errors", c.errors},
		{"pages", c.pages},
		{"informer", c.informer},
		{"apply", c.apply},
		{"patches", c.patches},
		{"conflicting updates", c.conflictingUpdates},
		{"rollout", c.rollout},
		{"dynamic", c.dynamicClient},
	}
	for _, step := range steps {
		limited, cancel := context.WithTimeout(ctx, patience)
		err := step.run(limited)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println("ok", step.name)
	}
	return nil
}

func check(right bool, format string, arguments ...any) error {
	if right {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

func (c *clients) discovery(context.Context) error {
	_, lists, err := c.typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	kinds := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			kinds[list.GroupVersion+"/"+resource.Name] = true
		}
	}
	for _, wanted := range []string{
		"v1/configmaps", "apps/v1/deployments/scale", "coordination.k8s.io/v1/leases",
		"compat.example.com/v1/greetings/status",
	} {
		if !kinds[wanted] {
			return fmt.Errorf("%s is not among the resources", wanted)
		}
	}
	if _, err := c.typed.Discovery().ServerPreferredResources(); err != nil {
		return err
	}
	schemas, err := c.typed.Discovery().OpenAPISchema() // protobuf
	if err != nil {
		return err
	}
	described := false
	for _, definition := range schemas.GetDefinitions().GetAdditionalProperties() {
		properties := definition.GetValue().GetProperties().GetAdditionalProperties()
		described = described || definition.GetName() == "com.example.compat.v1.Greeting" && len(properties) == 5
	}
	if !described {
		return errors.New("no OpenAPI v2 of the custom resource")
	}
	paths, err := c.typed.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	_, found := paths["apis/compat.example.com/v1"]
	return check(found, "no OpenAPI v3 of the custom resource")
}

func (c *clients) errors(ctx context.Context) error {
	maps := c.typed.CoreV1().ConfigMaps("default")
	_, missing := maps.Get(ctx, "missing", metav1.GetOptions{})
	_, unnamed := maps.Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{})
	wrong := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Wrong"}}
	_, invalid := maps.Create(ctx, wrong, metav1.CreateOptions{})
	once := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "once"}}
	if _, err := maps.Create(ctx, once, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, twice := maps.Create(ctx, once, metav1.CreateOptions{})
	stale := int64(1)
	preconditions := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: text(stale)}}
	refused := maps.Delete(ctx, "once", preconditions)
	return errors.Join(
		check(apierrors.IsNotFound(missing), "a missing object: %v", missing),
		check(apierrors.IsInvalid(unnamed), "an object without a name: %v", unnamed),
		check(apierrors.IsInvalid(invalid), "a wrong name: %v", invalid),
		check(apierrors.HasStatusCause(invalid, metav1.CauseTypeFieldValueInvalid), "its cause: %v", invalid),
		check(apierrors.IsAlreadyExists(twice), "created twice: %v", twice),
		check(apierrors.IsConflict(refused), "deleted with an old version: %v", refused),
		maps.Delete(ctx, "once", metav1.DeleteOptions{}),
	)
}

func text(number int64) *string {
	written := fmt.Sprint(number)
	return &written
}

func (c *clients) pages(ctx context.Context) error {
	secrets := c.typed.CoreV1().Secrets("default")
	for number := range 25 {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "page-", Labels: map[string]string{"paged": "yes"}},
			Data:       map[string][]byte{"number": fmt.Append(nil, number)},
		}
		if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	selected := metav1.ListOptions{LabelSelector: "paged in (yes)"}
	count := 0
	reader := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return secrets.List(ctx, options)
	})
	reader.PageSize = 10
	err := reader.EachListItem(ctx, selected, func(runtime.Object) error {
		count++
		return nil
	})
	if err != nil {
		return err
	}
	if err := secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		return err
	}
	left, err := secrets.List(ctx, selected)
	if err != nil {
		return err
	}
	return check(count == 25 && len(left.Items) == 0, "25 made, %d read, %d left", count, len(left.Items))
}

func (c *clients) informer(ctx context.Context) error {
	maps := c.typed.CoreV1().ConfigMaps("default")
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	if _, err := maps.Create(ctx, first, metav1.CreateOptions{}); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps()
	seen := make(chan string, 100)
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			seen <- fmt.Sprintf("add %s %t", object.(*corev1.ConfigMap).Name, initial)
		},
		UpdateFunc: func(_, object any) { seen <- "update " + object.(*corev1.ConfigMap).Data["key"] },
		DeleteFunc: func(object any) { seen <- "delete " + object.(*corev1.ConfigMap).Name },
	})
	if err != nil {
		return err
	}
	informing, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(informing.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return errors.New("the informer did not get in sync")
	}
	second := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "second"}}
	made, err := maps.Create(ctx, second, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data = map[string]string{"key": "value"}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "second", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, wanted := range []string{"add first true", "add second false", "update value", "delete second"} {
		if err := await(ctx, seen, wanted); err != nil {
			return err
		}
	}
	return maps.Delete(ctx, "first", metav1.DeleteOptions{})
}

// await reads on until it gets wanted: other objects may come before it.
func await(ctx context.Context, seen <-chan string, wanted string) error {
	for {
		select {
		case got := <-seen:
			if got == wanted {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the informer never said %q", wanted)
		}
	}
}

func (c *clients) apply(ctx context.Context) error {
	maps := c.typed.CoreV1().ConfigMaps("default")
	mine := corev1ac.ConfigMap("shared", "default").WithData(map[string]string{"a": "1", "b": "1"})
	if _, err := maps.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
		return err
	}
	yours := corev1ac.ConfigMap("shared", "default").WithData(map[string]string{"a": "2"})
	_, conflict := maps.Apply(ctx, yours, metav1.ApplyOptions{FieldManager: "you"})
	forced, err := maps.Apply(ctx, yours, metav1.ApplyOptions{FieldManager: "you", Force: true})
	if err != nil {
		return err
	}
	extracted, err := corev1ac.ExtractConfigMap(forced, "me")
	if err != nil {
		return err
	}
	fewer := corev1ac.ConfigMap("shared", "default")
	left, err := maps.Apply(ctx, fewer, metav1.ApplyOptions{FieldManager: "me"})
	if err != nil {
		return err
	}
	return errors.Join(
		check(apierrors.IsConflict(conflict), "applied over another's field: %v", conflict),
		check(apierrors.HasStatusCause(conflict, metav1.CauseTypeFieldManagerConflict), "cause: %v", conflict),
		check(len(extracted.Data) == 1 && extracted.Data["b"] == "1", "my fields are %v", extracted.Data),
		check(len(left.Data) == 1 && left.Data["a"] == "2", "what is left is %v", left.Data),
		maps.Delete(ctx, "shared", metav1.DeleteOptions{}),
	)
}

func (c *clients) patches(ctx context.Context) error {
	services := c.typed.CoreV1().Services("default")
	service := corev1ac.Service("web", "default").WithSpec(corev1ac.ServiceSpec().
		WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80)))
	if _, err := services.Apply(ctx, service, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
		return err
	}
	var patched *corev1.Service
	for kind, patch := range map[types.PatchType]string{
		types.StrategicMergePatchType: `{"spec":{"ports":[{"name":"https","port":443}]}}`,
		types.MergePatchType:          `{"metadata":{"labels":{"tier":"front"}}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/annotations","value":{"note":"x"}}]`,
	} {
		var err error
		patched, err = services.Patch(ctx, "web", kind, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return errors.Join(
		check(len(patched.Spec.Ports) == 2, "the ports are %v", patched.Spec.Ports),
		check(patched.Labels["tier"] == "front", "the labels are %v", patched.Labels),
		check(patched.Annotations["note"] == "x", "the annotations are %v", patched.Annotations),
		services.Delete(ctx, "web", metav1.DeleteOptions{}),
	)
}

func (c *clients) conflictingUpdates(ctx context.Context) error {
	maps := c.typed.CoreV1().ConfigMaps("default")
	stale, err := maps.Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "raced"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fresh := stale.DeepCopy()
	fresh.Data = map[string]string{"by": "another"}
	if _, err := maps.Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
		return err
	}
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if tries++; tries > 1 {
			if stale, err = maps.Get(ctx, "raced", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		stale.Labels = map[string]string{"by": "me"}
		_, err := maps.Update(ctx, stale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(
		check(tries == 2 && stale.Data["by"] == "another", "%d tries, data %v", tries, stale.Data),
		maps.Delete(ctx, "raced", metav1.DeleteOptions{}),
	)
}

func (c *clients) rollout(ctx context.Context) error {
	deployments := c.typed.AppsV1().Deployments("default")
	labels := map[string]string{"app": "web"}
	wanted := appsv1ac.Deployment("web", "default").WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(2).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).
			WithSpec(corev1ac.PodSpec().
				WithContainers(corev1ac.Container().WithName("web").WithImage("nginx:1.27")))))
	made, err := deployments.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "me"})
	if err != nil {
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return deployments.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return deployments.Watch(ctx, options)
		},
	}
	_, err = watchtools.UntilWithSync(ctx, source, &appsv1.Deployment{}, nil,
		func(event watch.Event) (bool, error) {
			seen, isDeployment := event.Object.(*appsv1.Deployment)
			return isDeployment && seen.Status.ReadyReplicas == 2, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for 2 ready replicas: %w", err)
	}
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 1
	if _, err := deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: metav1.NewUIDPreconditions(
		string(made.UID))}
	if err := deployments.Delete(ctx, "web", options); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		sets, err := c.typed.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		_, err = deployments.Get(ctx, "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(sets.Items) == 0, nil
	})
}

func (c *clients) dynamicClient(ctx context.Context) error {
	greetings := c.dynamic.Resource(groupVersion.WithResource("greetings")).Namespace("default")
	greeting := &unstructured.Unstructured{}
	document := `{"apiVersion":"compat.example.com/v1","kind":"Greeting","metadata":{"name":"untyped"},
		"spec":{"text":"hi"}}`
	if err := json.Unmarshal([]byte(document), &greeting.Object); err != nil {
		return err
	}
	made, err := greetings.Create(ctx, greeting, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		return err
	}
	watching, err := greetings.Watch(ctx, metav1.ListOptions{
		ResourceVersion: made.GetResourceVersion(), FieldSelector: "metadata.name=untyped"})
	if err != nil {
		return err
	}
	defer watching.Stop()
	if err := unstructured.SetNestedField(made.Object, "hi", "status", "said"); err != nil {
		return err
	}
	if _, err := greetings.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	event := <-watching.ResultChan()
	seen, isGreeting := event.Object.(*unstructured.Unstructured)
	if event.Type != watch.Modified || !isGreeting {
		return fmt.Errorf("the watch said %v", event)
	}
	said, _, _ := unstructured.NestedString(seen.Object, "status", "said")
	replicas, _, _ := unstructured.NestedInt64(seen.Object, "spec", "replicas")
	return errors.Join(
		check(said == "hi" && replicas == 1, "said %q, replicas %d", said, replicas),
		greetings.Delete(ctx, "untyped", metav1.DeleteOptions{}),
	)
}
