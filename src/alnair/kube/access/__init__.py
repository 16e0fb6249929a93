"""Where an API server is and who we are to it: kubeconfigs, tokens, certificates, plug-ins."""
