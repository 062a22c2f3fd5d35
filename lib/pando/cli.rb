# frozen_string_literal: true

require "pando/errors"
require "pando/platform"

module Pando
  # The command line: `pando [COMMAND] [ARGUMENTS]`. Runs in the process that
  # becomes the monitor. Each command is a small file in cli/, loaded when it is
  # asked for; without a command it is `serve`.
  #
  # Exit status: 0 after success, 1 if the server could not boot or failed, 2 if
  # the command line or a setting is wrong.
  module CLI
    # What a command talks to.
    Terminal = Struct.new(:out, :err, :env, keyword_init: true)

    # The class of a command, the file that defines it, and the line that help shows.
    Known = Struct.new(:class_name, :file, :help)

    # @return [Hash{String => Known}] a later command adds a line here and a file in cli/
    COMMANDS = {
      "serve" => Known.new(:Serve, "pando/cli/serve", "Serve an application (the default)."),
      "swarm" => Known.new(:Swarm, "pando/cli/swarm", "Run job nodes, and serve nothing."),
      "status" => Known.new(:Status, "pando/cli/status", "Show what the running server is doing."),
      "refork" => Known.new(:Refork, "pando/cli/refork", "Make a warm worker the next mold, and wait for the rollout."),
      "reload" => Known.new(:Reload, "pando/cli/reload", "Boot what is now in the release folder, and wait."),
      "upgrade" => Known.new(:Upgrade, "pando/cli/upgrade",
                             "Take up the Pando that is installed now; nobody restarts."),
      "scale" => Known.new(:Scale, "pando/cli/scale", "Change the number of workers: pando scale N."),
      "drain" => Known.new(:Drain, "pando/cli/drain", "Take the server out of its load balancers' rotation, and wait."),
      "quiet" => Known.new(:Quiet, "pando/cli/quiet", "Let job nodes take nothing new, and serve on."),
      "pages" => Known.new(:Pages, "pando/cli/pages", "Show which memory of a worker is its own, and why."),
      "stop" => Known.new(:Stop, "pando/cli/stop", "Stop the running server, and wait for its end."),
      "init" => Known.new(:Init, "pando/cli/init",
                          "Write config/pando.rb, from Puma's, Pitchfork's or Unicorn's file."),
      "config" => Known.new(:ShowConfig, "pando/cli/show_config", "Show the settings and where each came from."),
      "doctor" => Known.new(:Doctor, "pando/cli/doctor", "Find what a fork would break in an application."),
      "measure" => Known.new(:Measure, "pando/cli/measure", "Compare what the application takes on Puma and on Pando."),
      "help" => Known.new(:Help, "pando/cli/help", "Show this text."),
      "version" => Known.new(:Version, "pando/cli/version", "Show the version.")
    }.freeze

    # What is of use without a cluster.
    ANYWHERE = %w[serve init config help version].freeze

    # What pando/native loads; Pando is of no use without.
    EXTENSION = "pando/pando_ext"

    OK = 0
    FAILED = 1
    WRONG_USAGE = 2
    # As a shell says it of a command that a signal has ended: 128 and the signal's number; and of ^C.
    SIGNALLED = 128
    INTERRUPTED = 130

    class << self
      # Runs a command and ends the process with its status.
      #
      # @param argv [Array<String>]
      def start(argv)
        exit run(argv)
      rescue SignalException => e
        raise unless Process.pid == 1 # which no signal ends: signal(7), pid_namespaces(7)

        exit SIGNALLED + e.signo
      end

      # @param argv [Array<String>]
      # @param out [IO]
      # @param err [IO]
      # @param env [Hash{String => String}]
      # @return [Integer] exit status
      def run(argv, out: $stdout, err: $stderr, env: ENV)
        name, arguments = split(argv)
        command(name).new(arguments, Terminal.new(out: out, err: err, env: env)).call
      rescue UsageError, ConfigError => e
        complain(err, e.message, WRONG_USAGE)
      rescue BootError => e
        complain(err, e.message, FAILED)
      rescue LoadError => e
        raise unless e.path == EXTENSION

        complain(err, e.message.lines.first.chomp, FAILED) # the others are guesses of Ruby's
      rescue Interrupt
        complain(err, "interrupted", INTERRUPTED)
      rescue Errno::EPIPE
        OK # the reader of our output, a pager perhaps, has seen enough
      end

      # @param name [String] a known command
      # @return [Class]
      # @api private
      def command(name)
        known = COMMANDS.fetch(name)
        refuse(name) unless Platform.linux? || ANYWHERE.include?(name)
        require known.file
        const_get(known.class_name)
      end

      private

      def refuse(name)
        raise UsageError, "pando #{name} needs Linux, and this is #{Platform.name}: here Pando serves for " \
                          "development, from one plain process without a cluster to ask"
      end

      def split(argv)
        COMMANDS.key?(argv.first) ? [argv.first, argv.drop(1)] : ["serve", argv]
      end

      def complain(err, message, status)
        err.puts "pando: #{message}"
        status
      end
    end
  end
end
