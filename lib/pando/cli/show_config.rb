# frozen_string_literal: true

require "pando/cli/format"
require "pando/config/report"

module Pando
  module CLI
    # `pando config`: the effective settings, and where each comes from.
    #
    # @api private
    class ShowConfig < Command
      include Format

      def self.switches
        [Format::TEXT_OR_JSON]
      end

      private

      def perform
        report = Config::Report.new(config)
        terminal.out.puts(chosen_format == "json" ? report.json : report.text)
        CLI::OK
      end
    end
  end
end
