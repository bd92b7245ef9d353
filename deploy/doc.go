// Package deploy has nothing to compile: rules and dashboards for Prometheus and Grafana, and the tests that hold them to what the
// services really show.
package deploy
