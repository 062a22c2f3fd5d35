# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/cli/status_report"

module Pando
  module CLI
    # `pando status`: the processes, their generations, and what each one is doing. With --watch it shows them again and
    # again, until it is interrupted or the server has ended.
    class Status < ControlCommand
      # Seconds between two reports, and the least of them.
      INTERVAL = 2.0
      SHORTEST = 0.1
      WATCH = Switch.new(name: :watch, flags: %w[--watch], argument: "[SECONDS]",
                         type: Types::Seconds.new(least: SHORTEST),
                         help: "With `status`: show it again every 2 seconds, or as often as you say.").freeze

      def self.switches = [TEXT_OR_JSON, WATCH]

      private

      def perform
        return show || CLI::OK unless (seconds = interval)

        loop do
          clear
          show
          terminal.out.flush
          sleep(seconds)
        end
      end

      def show
        report = StatusReport.new(records)
        terminal.out.puts(chosen_format == "json" ? report.json : report.text)
      end

      # A file or a pipe gets one report after the other.
      def clear
        return unless terminal.out.tty? && chosen_format == "text"

        require "io/console"
        terminal.out.clear_screen
      end

      # @return [Float, nil] nil: once is enough
      def interval = flags[:watch] == true ? INTERVAL : flags[:watch]

      def records
        [].tap { |records| ControlClient.new(path).ask!("status", timeout: ANSWER) { |*record| records << record } }
      end
    end
  end
end
