package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"

	"github.com/coppice-chat/coppice/internal/check"
)

// kinds are those that the manifests may have.
var kinds = map[string]func() metav1.Object{
	"v1 Namespace":                  func() metav1.Object { return new(corev1.Namespace) },
	"v1 Service":                    func() metav1.Object { return new(corev1.Service) },
	"apps/v1 Deployment":            func() metav1.Object { return new(appsv1.Deployment) },
	"batch/v1 Job":                  func() metav1.Object { return new(batchv1.Job) },
	"policy/v1 PodDisruptionBudget": func() metav1.Object { return new(policyv1.PodDisruptionBudget) },
}

// decode reads the objects of a file. A member that Kubernetes doesn't know, one
// that stands twice and one of another type are errors.
func decode(content []byte) (all []metav1.Object, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var of metav1.TypeMeta
		if err := strict.Unmarshal(document, &of); err != nil {
			return nil, err
		}
		kind := of.APIVersion + " " + of.Kind
		make, known := kinds[kind]
		if !known {
			return nil, fmt.Errorf("%q is no kind of the manifests: %v are", kind, slices.Sorted(maps.Keys(kinds)))
		}
		object := make()
		if err := strict.UnmarshalStrict(document, object); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		all = append(all, object)
	}
}

// Each manifest is what Kubernetes takes. An upgrade leaves a server ready, probes
// ask the right paths, and pods run without rights and take secrets from a secret.
func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/*.yaml")
	check.Need(t, err == nil && len(files) != 0, "no manifest: %v", err)
	for _, file := range files {
		content := check.Must(os.ReadFile(file))(t)
		objects, err := decode(content)
		check.That(t, err == nil, "%s: %v", file, err)
		selectors := map[string]map[string]string{}
		var server corev1.PodTemplateSpec
		for _, object := range objects {
			switch o := object.(type) {
			case *appsv1.Deployment:
				server, selectors["deployment"] = o.Spec.Template, o.Spec.Selector.MatchLabels
				if rolling := o.Spec.Strategy.RollingUpdate; *o.Spec.Replicas < 2 || rolling == nil || *rolling.MaxUnavailable != intstr.FromInt32(0) {
					t.Error("an upgrade leaves no server ready")
				}
				checkPod(t, server.Spec)
			case *batchv1.Job:
				checkPod(t, o.Spec.Template.Spec)
			case *corev1.Service:
				selectors["service"] = o.Spec.Selector
			case *policyv1.PodDisruptionBudget:
				selectors["disruption budget"] = o.Spec.Selector.MatchLabels
			}
		}
		if len(server.Spec.Containers) == 0 {
			continue // a manifest without servers
		}
		for what, selector := range selectors {
			if len(selectors) != 3 || len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(server.Labels)) {
				t.Errorf("the selector of the %s, %v, doesn't select the pods %v", what, selector, server.Labels)
			}
		}
		c := server.Spec.Containers[0]
		for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			check.That(t, probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Path == path,
				"no probe asks %s: %+v", path, probe)
		}
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || *server.Spec.TerminationGracePeriodSeconds < 5+15 { // a wait, and the program's own end
			t.Error("a pod that ends cuts requests off")
		}
	}
}

func checkPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("the pod runs as %+v, with a token of Kubernetes", c)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !slices.Contains(s.Capabilities.Drop, "ALL") {
			t.Errorf("the container %s may do more than it needs: %+v", c.Name, s)
		}
		if r := c.Resources; r.Requests.Cpu().IsZero() || r.Requests.Memory().IsZero() || r.Limits.Memory().IsZero() {
			t.Errorf("the container %s has the resources %+v", c.Name, r)
		}
		for _, v := range c.Env {
			secret := strings.HasSuffix(v.Name, "_URL") || strings.HasSuffix(v.Name, "_KEY")
			check.That(t, !secret || v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil,
				"the container %s has %s from elsewhere than a secret", c.Name, v.Name)
		}
	}
}
