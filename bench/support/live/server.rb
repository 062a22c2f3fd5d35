# frozen_string_literal: true

require "json"
require "open3"
require "support/memory"
require "support/servers/pando"

module Bench
  module Live
    # Pando with pools, and the commands that control it while it runs.
    class Server < Bench::Servers::Pando
      WEB = /\Apando worker \d+ gen \d+/
      REACTOR = /\Apando reactor\b/
      COMMAND_WITHIN = 300 # seconds

      # @param config [String] the pools, and whatever else is not a benchmark's usual setting
      def initialize(config:, **options)
        super(refork: "manual", **options)
        @config = config
      end

      # Runs a command of exe/pando and waits for its outcome.
      # @return [String] what it said on stdout
      # @raise [Failed]
      def pando(*words)
        command = [Gem.ruby, *program, *words, "-c", "pando.rb"]
        output, errors, status = Open3.capture3(@environment, "timeout", COMMAND_WITHIN.to_s, *command, chdir: @folder)
        return output if status.success?

        raise Failed, "#{label}: pando #{words.join(" ")}: #{errors.lines.last(3).join}#{output}"
      end

      # @return [Integer] bytes, the PSS of all processes with such a title
      def pss(title) = Memory.of(pids_of(title), []).pss

      # @return [Hash{String => String}] the title of each worker of a pool, by pid
      def workers(pool) = tree.titles.transform_keys(&:to_s).select { |_pid, title| title.match?(pool) }

      # @return [Hash{String => Integer}] connections that the application has taken over, by pid of their worker
      def connections
        JSON.parse(pando("status", "--format", "json")).fetch("processes")
            .to_h { |process| [process["pid"].to_s, process["connections"]] }.compact
      end

      # @raise [Failed]
      def wait_for(what, &block) = wait_until(START_WITHIN, what, &block)

      # Asks for a stop and does not wait.
      def leave = signal(:TERM)

      private

      def extra = @config

      # All pools are there, not only web.
      def start
        super
        wait_until(START_WITHIN, "its start") { output.include?("server.ready") }
      end
    end
  end
end
