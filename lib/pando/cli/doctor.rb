# frozen_string_literal: true

require "pando/cli/format"

module Pando
  module CLI
    # `pando doctor`: looks for what a fork would break. Exit status: 0 clean, 1 findings
    # (notes do not count), 2 the application could not be examined or the command line is wrong.
    #
    # @api private
    class Doctor < Command
      include Format

      SWITCHES = [
        Format::REPORT, Format::OUTPUT,
        Switch.new(name: :requests, flags: %w[--requests], argument: "FILE|routes",
                   help: "With `doctor`: what to ask the application: a list, a log to replay, or Rails' routes."),
        Switch.new(name: :reforks, flags: %w[--reforks], argument: "N",
                   help: "With `doctor`: how many generations to go through. [1]"),
        Switch.new(name: :patience, flags: %w[--patience], argument: "SECONDS",
                   help: "With `doctor`: how long any one answer may take. [10]"),
        Switch.new(name: :baseline, flags: %w[--baseline], argument: "FILE",
                   help: "With `doctor`: fail only on findings that are not in it."),
        Switch.new(name: :write_baseline, flags: %w[--write-baseline], argument: "FILE",
                   help: "With `doctor`: write the findings there, as known from now on.")
      ].each(&:freeze).freeze
      REFORKS = 1
      REFORKS_AT_MOST = 50
      PATIENCE = 10.0

      def self.switches = SWITCHES

      private

      def perform
        require "pando/doctor"
        examine
      end

      def examine
        prepare
        report = Pando::Doctor.examine(config, requests: @requests, reforks: @reforks, patience: @patience)
        report = report.against(@baseline)
        write_report(report.write(@format))
        return accept(report) if flags[:write_baseline]

        report.clean? ? CLI::OK : CLI::FAILED
      rescue Pando::Doctor::NotExamined => e
        terminal.err.puts "pando: the application could not be examined: #{e.message}"
        CLI::WRONG_USAGE
      end

      # What is wrong is told before the application is started.
      def prepare
        config.require_rackup
        @format = chosen_format(Pando::Doctor::Report::FORMATS)
        @reforks = reforks
        @patience = patience
        @requests = requests
        @baseline = flags[:baseline] ? Pando::Doctor::Baseline.read(flags[:baseline]) : Pando::Doctor::Baseline.empty
      end

      def accept(report)
        Pando::Doctor::Baseline.write(flags[:write_baseline], report.findings)
        CLI::OK
      end

      def reforks
        number = flags[:reforks] ? Integer(flags[:reforks], 10, exception: false) : REFORKS
        return number if number&.between?(0, REFORKS_AT_MOST)

        raise UsageError, "--reforks: must be a number up to #{REFORKS_AT_MOST}, but is #{flags[:reforks].inspect}."
      end

      def patience
        seconds = flags[:patience] ? Float(flags[:patience], exception: false) : PATIENCE
        return seconds if seconds&.positive? && seconds.finite?

        raise UsageError, "--patience: must be a number of seconds, but is #{flags[:patience].inspect}."
      end

      def requests
        case wanted = flags[:requests]
        when nil then [Pando::Doctor::Request.root]
        when Pando::Doctor::RequestList::ROUTES then :routes
        else Pando::Doctor::RequestList.read(wanted).requests
        end
      end
    end
  end
end
