// kwok, built from its module: keeps simulated nodes alive and drives the pods on them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
)

func main() {
	flagset := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flagset.ParseErrorsAllowlist.UnknownFlags = true
	flagset.Usage = func() {}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, logger := log.InitFlags(ctx, flagset)
	ctx, err := config.InitFlags(ctx, flagset)
	if err == nil {
		command := cmd.NewCommand(ctx)
		command.PersistentFlags().AddFlagSet(flagset)
		err = command.ExecuteContext(ctx)
	}
	if err != nil {
		logger.Error("Execute", err)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
