# frozen_string_literal: true

require "pando/cli/command"

module Pando
  module CLI
    # `pando doctor`: finds what a fork would break. Exit status: 0 clean, 1 errors (with `--fail-on warning`
    # warnings too), 2 the application could not be examined or the command line is wrong, 3 no error, but a check
    # could not be done.
    class Doctor < Command
      SWITCHES = [
        REPORT, OUTPUT, HEADER,
        Switch.new(name: :requests, flags: %w[--requests], argument: "FILE|routes",
                   help: "With `doctor`: requests to send: a list, a log to replay, or the routes of a Rails app " \
                         "(in the environment test, unless you name another one)."),
        Switch.new(name: :yes, flags: %w[--yes],
                   help: "With `doctor`: allow --requests routes in production."),
        Switch.new(name: :reforks, flags: %w[--reforks], argument: "N", type: Types::Whole.new(0..50),
                   help: "With `doctor`: how many times to refork. [1]"),
        Switch.new(name: :patience, flags: %w[--patience], argument: "SECONDS", type: Types::Seconds.new,
                   help: "With `doctor`: how long each response may take. [10]"),
        Switch.new(name: :fail_on, flags: %w[--fail-on], argument: "error|warning",
                   type: Types::Choice.new("error", "warning"),
                   help: "With `doctor`: the lowest severity that leads to exit status 1. [error]"),
        Switch.new(name: :verbose, flags: %w[--verbose],
                   help: "With `doctor`: show all notes, also those that the text only counts."),
        Switch.new(name: :baseline, flags: %w[--baseline], argument: "FILE",
                   help: "With `doctor`: fail only on findings that are not in this file."),
        Switch.new(name: :write_baseline, flags: %w[--write-baseline], argument: "FILE",
                   help: "With `doctor`: write the findings to this file, as a baseline for later runs.")
      ].each(&:freeze).freeze
      REFORKS = 1
      PATIENCE = 10.0
      # Exit status: a check could not be made, and the others found nothing that fails.
      INCOMPLETE = 3
      # For Rails' routes, unless the command line names an environment.
      ROUTES_ENVIRONMENT = "test"

      def self.switches = SWITCHES

      private

      def perform
        require "pando/doctor"
        examine
      end

      def examine
        prepare
        report = Pando::Doctor.examine(config, requests: @requests, reforks: flags[:reforks] || REFORKS,
                                               patience: flags[:patience] || PATIENCE, headers: @headers)
        report = report.against(@baseline, fail_on: flags[:fail_on] || "error")
        write_report(report.write(chosen_format, verbose: flags[:verbose]))
        flags[:write_baseline] ? accept(report) : status(report)
      rescue Pando::Doctor::NotExamined => e
        tell "pando: the application could not be examined: #{e.message}"
        CLI::WRONG_USAGE
      end

      # Reports a wrong command line before the application is started.
      def prepare
        choose_environment
        config.require_rackup
        check_output
        check_output(:write_baseline)
        @requests = requests
        @headers = headers
        @baseline = flags[:baseline] ? Pando::Doctor::Baseline.read(flags[:baseline]) : Pando::Doctor::Baseline.empty
      end

      def accept(report)
        Pando::Doctor::Baseline.write(flags[:write_baseline], report.findings)
        report.complete? ? CLI::OK : INCOMPLETE
      end

      def status(report)
        return CLI::FAILED unless report.clean?

        report.complete? ? CLI::OK : INCOMPLETE
      end

      def choose_environment
        return unless flags[:requests] == "routes" # a GET route may do more than read

        default_environment(ROUTES_ENVIRONMENT)
        return if flags[:yes] || config.environment != "production"

        raise UsageError, "--requests routes would request every GET route of the application in production. " \
                          "Add --yes if you want that, or use the environment test: -e test."
      end

      def requests
        case wanted = flags[:requests]
        when nil then nil
        when Pando::Doctor::RequestList::ROUTES then :routes
        else Pando::Doctor::RequestList.read(wanted)
        end
      end
    end
  end
end
