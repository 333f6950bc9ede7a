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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
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
		if problems := validation.IsDNS1123Label(object.GetName()); len(problems) > 0 {
			return nil, fmt.Errorf("%s: the name %q: %v", kind, object.GetName(), problems)
		}
		all = append(all, object)
	}
}

// TestManifests holds each file to what Kubernetes takes, and the pods to what
// docs/install.md promises of them.
func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifest: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(content)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, object := range objects {
			if _, is := object.(*corev1.Namespace); !is && object.GetNamespace() != "coppice" {
				t.Errorf("%s: %s is in the namespace %q", file, object.GetName(), object.GetNamespace())
			}
			switch o := object.(type) {
			case *appsv1.Deployment:
				checkDeployment(t, o, objects)
			case *batchv1.Job:
				checkPod(t, o.Spec.Template.Spec)
			}
		}
	}
}

func checkDeployment(t *testing.T, d *appsv1.Deployment, objects []metav1.Object) {
	pod := d.Spec.Template
	checkPod(t, pod.Spec)
	selects := func(what string, selector map[string]string) {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the selector of the %s, %v, isn't of the pods %v", what, selector, pod.Labels)
		}
	}
	selects("deployment", d.Spec.Selector.MatchLabels)
	if rolling := d.Spec.Strategy.RollingUpdate; *d.Spec.Replicas < 2 || rolling == nil || *rolling.MaxUnavailable != intstr.FromInt32(0) {
		t.Error("an upgrade leaves no server ready")
	}
	server := pod.Spec.Containers[0]
	ports := map[string]bool{}
	for _, p := range server.Ports {
		ports[p.Name] = true
	}
	for name, probe := range map[string]*corev1.Probe{"startup": server.StartupProbe, "liveness": server.LivenessProbe, "readiness": server.ReadinessProbe} {
		path := "/healthz"
		if name == "readiness" {
			path = "/readyz"
		}
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || !ports[probe.HTTPGet.Port.StrVal] {
			t.Errorf("the %s probe asks %+v", name, probe)
		}
	}
	// The wait before the end, and 15 s that compose.yaml gives the program.
	if stop := server.Lifecycle.PreStop; stop == nil || *pod.Spec.TerminationGracePeriodSeconds < 5+15 {
		t.Error("a pod that ends cuts requests off")
	}
	services, budgets := 0, 0
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Service:
			services++
			selects("service", o.Spec.Selector)
			for _, p := range o.Spec.Ports {
				if !ports[p.TargetPort.StrVal] {
					t.Errorf("the service's port %v leads to %v", p.Port, p.TargetPort)
				}
			}
		case *policyv1.PodDisruptionBudget:
			budgets++
			selects("disruption budget", o.Spec.Selector.MatchLabels)
		}
	}
	if services != 1 || budgets != 1 {
		t.Errorf("%d services and %d disruption budgets", services, budgets)
	}
}

// checkPod holds a pod to what everybody's pods should be: not root, without
// rights, with resources, and with secrets from a secret.
func checkPod(t *testing.T, pod corev1.PodSpec) {
	if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.RunAsUser == nil || *c.RunAsUser != 65532 || c.SeccompProfile == nil {
		t.Errorf("the pod runs as %+v", c)
	}
	if token := pod.AutomountServiceAccountToken; token == nil || *token {
		t.Error("the pod gets a token of Kubernetes")
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") {
			t.Errorf("the container %s may do more than it needs: %+v", c.Name, s)
		}
		for _, needed := range []*resource.Quantity{c.Resources.Requests.Cpu(), c.Resources.Requests.Memory(), c.Resources.Limits.Memory()} {
			if needed.IsZero() {
				t.Errorf("the container %s has the resources %+v", c.Name, c.Resources)
			}
		}
		for _, v := range c.Env {
			secret := strings.HasSuffix(v.Name, "_URL") || strings.HasSuffix(v.Name, "_KEY")
			if secret && (v.Value != "" || v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil || v.ValueFrom.SecretKeyRef.Name != "coppice") {
				t.Errorf("the container %s has %s from elsewhere than the secret", c.Name, v.Name)
			}
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("the container %s mounts %s, which the pod hasn't", c.Name, m.Name)
			}
		}
	}
}

// TestDecode holds that a manifest with a mistake is found out.
func TestDecode(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("../../deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{
		{"maxSurge: 1", "maxSurges: 1"},
		{"replicas: 2", "replicas: two"},
		{"readinessProbe:", "livenessProbe:"},
		{"kind: Service", "kind: Servant"},
		{"policy/v1", "policy/v1beta1"},
		{"  name: coppice\n", "  name: Coppice\n"},
		{"memory: 1Gi", "memory: 1GiB"},
		{"fsGroup", "  fsGroup"},
	} {
		changed := bytes.Replace(good, []byte(wrong[0]), []byte(wrong[1]), 1)
		if _, err := decode(changed); err == nil || bytes.Equal(changed, good) {
			t.Errorf("%q instead of %q was taken", wrong[1], wrong[0])
		}
	}
}
