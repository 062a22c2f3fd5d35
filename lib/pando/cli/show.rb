# frozen_string_literal: true

require "pando/cli/command"
require "pando/config/report"
require "pando/version"

module Pando
  module CLI
    # `pando config`: the effective settings, and where each comes from.
    class ShowConfig < Command
      def self.switches = [TEXT_OR_JSON]

      private

      def perform
        report = Config::Report.new(config)
        terminal.out.puts(chosen_format == "json" ? report.json : report.text)
        CLI::OK
      end
    end

    # `pando version`: the versions of Pando and of Ruby.
    class Version
      def initialize(_arguments, terminal)
        @out = terminal.out
      end

      def call
        @out.puts "pando #{VERSION} (ruby #{RUBY_VERSION} #{RUBY_PLATFORM})"
        CLI::OK
      end
    end
  end
end
