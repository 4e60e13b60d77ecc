package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func runOperator(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := addToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              manager,
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	reconciler := &greeter{Client: mgr.GetClient(), events: mgr.GetEventRecorder(manager)}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Greeting{}).
		Owns(&corev1.ConfigMap{}).
		Complete(reconciler)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

type greeter struct {
	client.Client

	events events.EventRecorder
}

// Reconcile says what one Greeting wants said.
func (r *greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := &Greeting{}
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.bidFarewell(ctx, greeting)
	}
	if controllerutil.AddFinalizer(greeting, finalizer) {
		if err := r.Update(ctx, greeting); err != nil {
			return ctrl.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	if err := r.Apply(ctx, said(greeting), client.FieldOwner(manager), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("applying the ConfigMap: %w", err)
	}
	status := GreetingStatus{ObservedGeneration: greeting.Generation, Said: greeting.Spec.Text}
	if greeting.Status != status {
		base := greeting.DeepCopyObject().(*Greeting)
		greeting.Status = status
		if err := r.Status().Patch(ctx, greeting, client.MergeFrom(base)); err != nil {
			return ctrl.Result{}, fmt.Errorf("patching the status: %w", err)
		}
		r.events.Eventf(greeting, nil, corev1.EventTypeNormal, "Greeted", "Greet", "said %s", status.Said)
	}
	return ctrl.Result{}, nil
}

func said(greeting *Greeting) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(greeting.Name, greeting.Namespace).
		WithData(map[string]string{"text": greeting.Spec.Text}).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(groupVersion.String()).
			WithKind("Greeting").
			WithName(greeting.Name).
			WithUID(greeting.UID).
			WithController(true).
			WithBlockOwnerDeletion(true))
}

// bidFarewell creates a ConfigMap (in protobuf, as controller-runtime does with built-in kinds).
func (r *greeter) bidFarewell(ctx context.Context, greeting *Greeting) error {
	if !controllerutil.ContainsFinalizer(greeting, finalizer) {
		return nil
	}
	farewell := &corev1.ConfigMap{Data: map[string]string{"text": greeting.Spec.Text}}
	farewell.Name, farewell.Namespace = "farewell-"+greeting.Name, greeting.Namespace
	if err := r.Create(ctx, farewell); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating the farewell: %w", err)
	}
	controllerutil.RemoveFinalizer(greeting, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, greeting))
}
