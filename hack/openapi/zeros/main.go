// Command zeros prints, per OpenAPI definition of the simulated kinds, what Go's JSON encoding does with
// unset fields: "zero" is what an empty value prints, "drop" names the fields that are left out when they
// hold a zero value, "go" their Go types (error messages name them).
// Run it in a module that requires k8s.io/api, apimachinery and apiextensions-apiserver (the one that builds
// the control plane does) and give its output to extract.py.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type def struct {
	Zero map[string]any    `json:"zero,omitempty"`
	Drop []string          `json:"drop,omitempty"`
	Go   map[string]string `json:"go,omitempty"`
}

var out = map[string]*def{}

func name(t reflect.Type) string {
	p := t.PkgPath()
	parts := strings.SplitN(p, "/", 2)
	h := strings.Split(parts[0], ".")
	for i, j := 0, len(h)-1; i < j; i, j = i+1, j-1 {
		h[i], h[j] = h[j], h[i]
	}
	return strings.Join(h, ".") + "." + strings.ReplaceAll(parts[1], "/", ".") + "." + t.Name()
}

var marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()

func walk(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return
	}
	if _, ok := out[name(t)]; ok {
		return
	}
	d := &def{Go: map[string]string{}}
	out[name(t)] = d
	raw, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		panic(err)
	}
	_ = json.Unmarshal(raw, &d.Zero)
	fields(t, d)
}

func fields(t reflect.Type, d *def) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Anonymous && (tag[0] == "" || len(tag) > 1 && tag[1] == "inline") {
			fields(f.Type, d)
			continue
		}
		if tag[0] == "-" || tag[0] == "" {
			continue
		}
		omit := strings.Contains(f.Tag.Get("json"), "omitempty") || strings.Contains(f.Tag.Get("json"), "omitzero")
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Struct, reflect.Interface:
		default:
			if omit {
				d.Drop = append(d.Drop, tag[0])
			}
		}
		d.Go[tag[0]] = f.Type.String()
		walk(f.Type)
	}
}

func main() {
	for _, o := range []any{
		corev1.Namespace{}, corev1.Pod{}, corev1.ConfigMap{}, corev1.Secret{}, corev1.Service{}, corev1.ServiceAccount{},
		corev1.Event{}, eventsv1.Event{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, coordinationv1.Lease{},
		extv1.CustomResourceDefinition{}, rbacv1.Role{}, rbacv1.RoleBinding{}, rbacv1.ClusterRole{},
		rbacv1.ClusterRoleBinding{}, autoscalingv1.Scale{}, metav1.DeleteOptions{},
	} {
		walk(reflect.TypeOf(o))
	}
	b, _ := json.MarshalIndent(out, "", " ")
	fmt.Fprintln(os.Stdout, string(b))
}
