# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/cli/status_report"

module Pando
  module CLI
    # `pando status`: who lives, from which generation, and what each is doing.
    #
    # @api private
    class Status < ControlCommand
      FORMAT = Switch.new(name: :format, flags: %w[--format], argument: "text|json",
                          help: "With `config` and `status`: how to show it.").freeze
      # Seconds: the monitor answers in milliseconds, or is not well.
      ANSWER = 10.0

      def self.switches
        [FORMAT]
      end

      private

      def perform
        report = StatusReport.new(records)
        terminal.out.puts(format == "json" ? report.json : report.text)
        CLI::OK
      rescue ControlClient::Silent => e
        report_failure(e.message)
      end

      def records
        [].tap { |records| ControlClient.new(path).ask("status", timeout: ANSWER) { |*record| records << record } }
      end

      def format
        known = %w[text json]
        given = flags[:format] || "text"
        return given if known.include?(given)

        raise UsageError, "--format: must be text or json, but is #{given.inspect}."
      end
    end
  end
end
