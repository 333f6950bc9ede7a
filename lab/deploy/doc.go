// Package deploy holds the manifests in the product's folder deploy/ to what
// Kubernetes takes. It needs the types of Kubernetes' API, and no cluster and no
// network. What the manifests say of the program itself, cmd/coppice tests.
package deploy
