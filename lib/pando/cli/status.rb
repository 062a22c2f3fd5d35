# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/cli/format"
require "pando/cli/status_report"

module Pando
  module CLI
    # `pando status`: the processes, their generations, and what each one is doing.
    #
    # @api private
    class Status < ControlCommand
      include Format

      # Seconds. A healthy monitor answers within milliseconds.
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
