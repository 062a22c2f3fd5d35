# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/cli/format"
require "pando/cli/status_report"

module Pando
  module CLI
    # `pando status`: who lives, from which generation, and what each is doing.
    #
    # @api private
    class Status < ControlCommand
      include Format

      # Seconds: the monitor answers in milliseconds, or is not well.
      ANSWER = 10.0

      def self.switches
        [Format::TEXT_OR_JSON]
      end

      private

      def perform
        report = StatusReport.new(records)
        terminal.out.puts(chosen_format == "json" ? report.json : report.text)
        CLI::OK
      rescue ControlClient::Silent => e
        report_failure(e.message)
      end

      def records
        [].tap { |records| ControlClient.new(path).ask("status", timeout: ANSWER) { |*record| records << record } }
      end
    end
  end
end
