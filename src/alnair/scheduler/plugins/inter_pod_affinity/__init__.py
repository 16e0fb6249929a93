"""InterPodAffinity: near pods that a pod wants near, away from those it, or they, want away."""
