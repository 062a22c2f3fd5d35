# frozen_string_literal: true

require "pando/cli/command"
require "pando/config/report"

module Pando
  module CLI
    # `pando config`: the settings that hold and where each came from.
    #
    # @api private
    class ShowConfig < Command
      FORMAT = Switch.new(name: :format, flags: %w[--format], argument: "text|json",
                          help: "With `config` and `status`: how to show it.").freeze

      def self.switches
        [FORMAT]
      end

      private

      def perform
        report = Config::Report.new(config)
        terminal.out.puts(json? ? report.json : report.text)
        CLI::OK
      end

      def json?
        case format = flags[:format] || "text"
        when "text" then false
        when "json" then true
        else raise UsageError, "--format: must be text or json, but is #{format.inspect}."
        end
      end
    end
  end
end
