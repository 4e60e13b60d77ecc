# Prints the targets of a Makefile: `##@ Heading` lines, and `target: … ## what it does` lines.
BEGIN { FS = ":.*## "; printf "WebApp operator and kubeloop, its runtime. Usage: make TARGET\n" }
/^##@ /           { printf "\n%s\n", substr($0, 5) }
/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $1, $2 }
END { printf "\nNothing but Python 3.11 or newer is needed (controlplane and test-e2e also want Go).\n" }
