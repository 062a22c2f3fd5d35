# frozen_string_literal: true

require "pando/cli/command"

module Pando
  module CLI
    # `pando measure`: runs the application on Puma and on Pando under the same load, and compares memory and CPU time.
    # Exit status: 0 measured, 2 it could not be measured or the command line is wrong, 130 interrupted.
    class Measure < Command
      SWITCHES = [
        REPORT, OUTPUT, HEADER,
        Switch.new(name: :routes, flags: %w[--routes], argument: "FILE",
                   help: "With `measure`: the requests, a path or a method and a path on each line. Default, " \
                         "without --log: the GET routes of a Rails app, or /."),
        Switch.new(name: :log, flags: %w[--log], argument: "FILE",
                   help: "With `measure`: a log to replay (Rails, nginx or JSON); only GET and HEAD."),
        Switch.new(name: :writes, flags: %w[--writes],
                   help: "With `measure`: also send requests other than GET and HEAD."),
        Switch.new(name: :requests, flags: %w[--requests], argument: "N", type: Types::Whole.new(1..1_000_000),
                   help: "With `measure`: how many requests each worker gets. [1000]"),
        Switch.new(name: :clients, flags: %w[--clients], argument: "N", type: Types::Whole.new(1..256),
                   help: "With `measure`: how many requests to send at the same time. [number of workers]"),
        Switch.new(name: :against, flags: %w[--against], argument: "puma|none",
                   type: Types::Choice.new(:puma, :none),
                   help: "With `measure`: the server to compare with. [puma, if it is in the bundle]")
      ].each(&:freeze).freeze
      WORKERS = 4
      WORKERS_TYPE = Types::Whole.new(1..64)
      REQUESTS = 1000
      ENVIRONMENT = "production"

      def self.switches = SWITCHES

      private

      def perform
        require "pando/measure"
        prepare
        announce
        result = Pando::Measure.call(config, @plan, @selection) { |*facts| progress(*facts) }
        write_report(Pando::Measure::Report.write(result, chosen_format))
        CLI::OK
      rescue Pando::Measure::NotMeasured => e
        tell "pando: nothing was measured: #{e.message}"
        CLI::WRONG_USAGE
      end

      # Reports wrong arguments before it starts anything.
      def prepare
        default_environment(ENVIRONMENT)
        config.require_rackup
        check_output
        workers = workers()
        @plan = Pando::Measure::Plan.new(workers: workers, requests: flags[:requests] || REQUESTS,
                                         clients: flags[:clients] || workers, headers: headers, against: against)
        @selection = selection
      end

      # Warns the user, because the measurement uses the real database and services.
      def announce
        tell "pando measure: #{config.directory} in the environment #{config.environment}, with its " \
             "real database and services. Press Control-C to stop."
      end

      # Without a terminal it shows only every tenth of the load.
      def progress(words, done = nil, total = nil)
        return tell("  #{words}") unless done

        line = "  #{words}: #{done} of #{total} requests per server"
        return terminal.err.print("\r#{line}#{"\n" if done >= total}") if terminal.err.tty?

        tenth = done * 10 / total
        tell(line) if tenth > @tenth.to_i
        @tenth = tenth
      end

      def workers
        given = flags.last(:workers) or return WORKERS

        WORKERS_TYPE.cast(given.text)
      rescue Config::Type::Invalid => e
        raise UsageError, "#{given.flag}: #{e.message}"
      end

      def against
        return flags[:against] || :puma unless flags[:against] == :puma && !Pando::Measure::PumaSubject.program

        raise UsageError, "--against puma: puma is not in the bundle: bundle add puma"
      end

      # @return [Pando::Measure::Selection, nil] nil: the user named neither
      def selection
        raise UsageError, "give either --routes or --log, not both" if flags[:routes] && flags[:log]

        flag, file = %i[routes log].map { |name| ["--#{name}", flags[name]] }.find(&:last)
        read(flag, file) if file
      end

      def read(flag, file)
        found = Pando::Measure::Selection.of_lines(File.foreach(file, mode: "rb"), file, writes: flags[:writes] == true)
        return found if found.requests.any?

        reason = found.left_out.keys.find { |words| words != Pando::Measure::Selection::UNREADABLE }
        raise UsageError, "#{flag}: #{file} contains no request that can be sent#{": #{reason}" if reason}"
      rescue Errno::ENOENT
        raise UsageError, "#{flag}: there is no file #{file}"
      rescue Errno::EISDIR
        raise UsageError, "#{flag}: #{file} is a folder, not a file"
      rescue SystemCallError => e
        raise UsageError, "#{flag}: #{file} cannot be read: #{e.class.new.message}"
      end
    end
  end
end
