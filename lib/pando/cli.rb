# frozen_string_literal: true

require "pando/errors"
require "pando/platform"

module Pando
  # The command line: `pando [COMMAND] [ARGUMENTS]`. Runs in the process that
  # becomes the monitor. The file of a command in cli/ is loaded on demand. The default command is `serve`.
  #
  # Exit status: 0 on success, 1 if the server could not boot or failed, 2 if the
  # command line or a setting is wrong.
  #
  # @api private
  module CLI
    # The streams and the environment of a command.
    Terminal = Struct.new(:out, :err, :env, keyword_init: true)

    # A command's class, the file that defines it, and its line in the help.
    Known = Struct.new(:class_name, :file, :help) do
      # @return [Class]
      def load
        require file
        CLI.const_get(class_name)
      end
    end

    CONTROL = "pando/cli/control_commands"

    # @return [Hash{String => Known}] a new command needs a line here and a file in cli/
    COMMANDS = {
      "serve" => Known.new(:Serve, "pando/cli/serve", "Serve an application (the default command)."),
      "swarm" => Known.new(:Swarm, "pando/cli/serve", "Run job nodes only, without serving requests."),
      "status" => Known.new(:Status, "pando/cli/status", "Show what the running server is doing."),
      "top" => Known.new(:Top, "pando/cli/top", "Watch the running server on the whole screen, and control it."),
      "dashboard" => Known.new(:Dashboard, "pando/cli/dashboard", "Print the URL of the dashboard."),
      "events" => Known.new(:FollowEvents, "pando/cli/events",
                            "Show what happens in the running server: pando events -f."),
      "refork" => Known.new(:Refork, CONTROL, "Make a warm worker the next mold, and wait for the rollout."),
      "reload" => Known.new(:Reload, CONTROL, "Boot the code that is on disk now, and wait."),
      "upgrade" => Known.new(:Upgrade, CONTROL,
                             "Upgrade the monitor to the installed version; workers keep running."),
      "scale" => Known.new(:Scale, CONTROL, "Change the number of workers: pando scale N."),
      "stack" => Known.new(:Stack, CONTROL, "Show the stack of a worker now: pando stack SLOT."),
      "kill" => Known.new(:Kill, CONTROL, "Kill a worker; another takes its place: pando kill SLOT."),
      "drain" => Known.new(:Drain, CONTROL, "Make load balancers stop sending requests, and wait."),
      "quiet" => Known.new(:Quiet, CONTROL, "Make job nodes take no new jobs; web workers keep serving."),
      "pages" => Known.new(:Pages, "pando/cli/pages", "Show which memory of a worker is private, and why."),
      "slow" => Known.new(:Slow, "pando/cli/slow", "Show the last slow requests, and the line that each one was at."),
      "history" => Known.new(:History, "pando/cli/history",
                             "Show memory and latency over time, and what reforks have saved."),
      "stop" => Known.new(:Stop, CONTROL, "Stop the running server, and wait until it has ended."),
      "init" => Known.new(:Init, "pando/cli/init",
                          "Write config/pando.rb, from the file of Puma, Pitchfork or Unicorn."),
      "config" => Known.new(:ShowConfig, "pando/cli/show", "Show the settings, and where each comes from."),
      "doctor" => Known.new(:Doctor, "pando/cli/doctor", "Find what a fork would break in the application."),
      "measure" => Known.new(:Measure, "pando/cli/measure",
                             "Compare memory and CPU time of the application on Puma and Pando."),
      "help" => Known.new(:Help, "pando/cli/help", "Show this text."),
      "version" => Known.new(:Version, "pando/cli/show", "Show the version.")
    }.freeze

    # The commands that work on every platform.
    ANYWHERE = %w[serve init config help version].freeze

    # The extension that pando/native loads. Pando does not work without it.
    EXTENSION = "pando/pando_ext"

    OK = 0
    FAILED = 1
    WRONG_USAGE = 2
    # As in a shell: 128 plus the number of the signal that ended the command; the second one is for ^C.
    SIGNALLED = 128
    INTERRUPTED = 130

    class << self
      # Runs a command and ends the process with its status.
      #
      # @api public
      def start(argv)
        exit run(argv)
      rescue SignalException => e
        raise unless Process.pid == 1 # a signal does not end PID 1: signal(7), pid_namespaces(7)

        exit SIGNALLED + e.signo
      end

      # @return [Integer] exit status
      # @api public
      def run(argv, out: $stdout, err: $stderr, env: ENV)
        name, arguments = split(utf8(argv))
        command(name).new(arguments, Terminal.new(out: out, err: err, env: env)).call.tap { flush(out) }
      rescue UsageError, ConfigError => e
        complain(err, e.message, WRONG_USAGE)
      rescue BootError => e
        complain(err, e.message, FAILED)
      rescue LoadError => e
        raise unless e.path == EXTENSION

        complain(err, e.message.lines.first.chomp, FAILED) # Ruby's suggestions follow on further lines
      rescue Interrupt
        complain(err, "interrupted", INTERRUPTED)
      rescue Errno::ENOSPC => e
        complain(err, "no space is left for what this command writes: #{e.message}", FAILED)
      rescue Errno::EPIPE
        OK # the reader of what the command shows, such as a pager, has closed it
      end

      # @param name [String] a known command
      # @return [Class]
      def command(name)
        known = COMMANDS.fetch(name)
        refuse(name) unless Platform.linux? || ANYWHERE.include?(name)
        known.load
      end

      private

      def refuse(name)
        raise UsageError, "pando #{name} needs Linux, and this is #{Platform.name}: here Pando serves only for " \
                          "development, in a single process without a cluster"
      end

      # In the locale C, Ruby takes them for ASCII.
      def utf8(argv)
        texts = argv.map { |text| text.dup.force_encoding(Encoding::UTF_8) }
        wrong = texts.find { |text| !text.valid_encoding? } or return texts

        raise UsageError, "the argument #{wrong.inspect} is not valid UTF-8"
      end

      def split(argv) = COMMANDS.key?(argv.first) ? [argv.first, argv.drop(1)] : ["serve", argv]

      def complain(err, message, status)
        err.puts "pando: #{message}"
        status
      rescue Errno::EPIPE
        status
      end

      # The command is over: whether its output is read changes nothing.
      def flush(out)
        out.flush
      rescue Errno::EPIPE
        nil
      end
    end
  end
end
