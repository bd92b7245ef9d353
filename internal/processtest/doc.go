// Package processtest holds no product code. Its tests build the programs and run them as processes: several
// replicas on one database, killed with SIGKILL between the commits, with answers lost in between.
package processtest
