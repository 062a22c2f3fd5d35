# frozen_string_literal: true

require "io/wait"
require "pando/cli/command"
require "pando/cli/control_client"

module Pando
  module CLI
    # What the commands that ask a running server have in common. They end with 0 when it did what
    # was asked, with 1 when it could not, and with 2 when there is none to ask.
    #
    # @api private
    class ControlCommand < Command
      TIMEOUT = Switch.new(name: :wait, flags: %w[--wait], argument: "SECONDS",
                           help: "How long to wait for the outcome of refork, reload, upgrade, scale, drain or " \
                                 "stop (default: 300).").freeze
      PATIENCE = 300.0

      def self.switches
        [TIMEOUT]
      end

      private

      # What it takes that is no flag.
      # @return [Array<String>]
      def operands = []

      def words = flags.words

      # One too many has a message of its own.
      def most_words = operands.size + 1

      def path
        surplus = words[operands.size]
        raise UsageError, "one word too many: #{surplus.inspect}. See pando --help." if surplus

        socket = config.control
        raise UsageError, "the setting `control` is off: --control PATH names the server's socket" unless socket
        raise UsageError, no_folder(File.dirname(socket)) if config.default?(:control) && !folder?(socket)

        socket
      rescue ConfigError => e
        raise if flags.last(:control)

        raise ConfigError, "#{e.message}\n--control PATH asks the server that runs, without reading the configuration"
      end

      def folder?(socket) = File.directory?(File.dirname(socket))

      # A server makes it at its start.
      def no_folder(path)
        "there is no folder #{path} for the control socket: no server runs in #{config.directory}, or it could not " \
          "make one. Then control.unavailable in its log says why: write control \"PATH\" into the config file, with " \
          "a path in a folder that it may write to"
      end

      # Whose socket is named is asked, whatever has become of the file since: that may be why.
      def config
        @config ||= Config.load(flags, env: terminal.env, dir: directory, file: flags.last(:control).nil?)
      end

      # Shows what happens, and how it ended.
      # @return [Integer] exit status
      def carry_out(word, pairs = {})
        last = nil
        outcome, said = ControlClient.new(path).ask(word, pairs, timeout: patience) do |kind, facts|
          last = facts["name"] || last
          terminal.err.puts(kind == "waiting" ? waiting(facts) : progress(facts))
        end
        return report_failure(said["reason"]) if outcome == "failed"

        terminal.out.puts said["text"]
        CLI::OK
      rescue ControlClient::Late => e
        report_failure("#{e.message}; the server goes on with it#{" (last: #{last})" if last}: see pando status")
      rescue ControlClient::Silent => e
        report_failure(e.message)
      end

      def report_failure(reason)
        terminal.err.puts "pando: #{reason}"
        CLI::FAILED
      end

      def progress(event)
        more = event.except("name").map { |key, value| "#{key}=#{value.include?(" ") ? value.inspect : value}" }
        ["  #{event["name"]}", *more].join(" ")
      end

      def waiting(facts)
        seconds = facts["seconds"]
        "  waiting: #{facts["reason"]}#{", for #{seconds} s at most" if seconds}"
      end

      def patience
        return PATIENCE unless (text = flags[:wait])

        Float(text)
      rescue ArgumentError
        raise UsageError, "--wait: must be a number of seconds, but is #{text.inspect}."
      end
    end
  end
end
