# frozen_string_literal: true

require "json"
require "rbconfig"
require "pando/doctor/requests"
require "pando/measure/subject"
require "pando/wording"

module Pando
  module Measure
    # The requests that both servers get, in order and with repetitions, and those that were left out, with the reasons.
    class Selection
      include Wording

      # Requests. Of a longer log, only the beginning is replayed.
      LONGEST = 20_000
      # Different requests: each is tried once with each server before anything is measured.
      DIFFERENT = 500
      WRITES = "only GET and HEAD of a log are replayed; --writes replays the others too, without their bodies"
      LISTED_WRITES = "only GET and HEAD are sent without --writes"
      UNREADABLE = "not a request that can be sent"
      RARE = "not among the #{DIFFERENT} most frequent requests".freeze
      # Paths of GET requests that change something in many applications, although a GET should not.
      HAZARDOUS = /log_?out|sign_?out|delete|destroy|remove|unsubscribe|\breset/i
      HAZARD = "by its name it may do more than read; to send it, list it in --routes FILE"
      TURBO = /_historical_location\z/
      TURBOS = "a route of Turbo"

      class << self
        include Wording

        # @param lines [Enumerable<String>] of a list or a log, see {Doctor::RequestLine}
        # @param origin [String] where they come from, for the report
        # @param writes [Boolean] whether to include requests that do more than read
        def of_lines(lines, origin, writes: false)
          read = Doctor::RequestLines.new(lines)
          requests = []
          omitted = Hash.new { |all, reason| all[reason] = [] }
          read.each do |line|
            reason = objection(line) unless writes
            reason ? omitted[reason] << line.request : requests << line.request
            break if requests.size == LONGEST
          end
          origin = "#{origin}, up to its request #{LONGEST}" if requests.size == LONGEST
          new(requests, origin, { **omitted, UNREADABLE => unreadable(read.unread) }).without_rare
        end

        def of_routes(paths)
          omitted = { HAZARD => paths.grep(HAZARDOUS), TURBOS => paths.grep(TURBO) }
          taken = paths - omitted.values.flatten
          requests = (taken.empty? ? ["/"] : taken).map { |path| Doctor::RequestLine.new(path).request }.compact
          new(requests, "the GET routes of the application without parameters", omitted)
        end

        def of_root = new([Doctor::Request.root], "only /, since you have given neither --routes nor --log", {})

        private

        def objection(line)
          return if line.safe?

          line.logged? ? WRITES : LISTED_WRITES
        end

        # @param numbers [Array<Integer>] of lines
        def unreadable(numbers)
          return [] if numbers.empty?

          first = numbers.one? ? "line #{numbers.first}" : "the first is line #{numbers.first}"
          ["#{counted(numbers.size, "line")}, #{first}"]
        end
      end

      # The requests, and where they come from.
      attr_reader :requests, :origin
      # @return [Hash{String => Array<Object>}] by reason, requests or their names
      attr_reader :omitted

      def initialize(requests, origin, omitted)
        @requests = requests
        @origin = origin
        @omitted = omitted.reject { |_, named| named.empty? }
      end

      def different = requests.uniq

      # @param failed [Hash{Doctor::Request => String}] the reason by request
      def without(failed)
        more = failed.keys.group_by { |request| failed.fetch(request) }
        Selection.new(requests.reject { |request| failed.key?(request) }, origin, omitted.merge(more))
      end

      # @return [Selection] with no more than {DIFFERENT} different requests
      def without_rare
        rare = requests.tally.sort_by.with_index { |(_, times), place| [-times, place] }.drop(DIFFERENT).to_h
        kept = rare.empty? ? requests : requests.reject { |request| rare.key?(request) }
        Selection.new(kept, origin, omitted.merge(RARE => rare.keys))
      end

      # That many from there on, starting over after the last.
      def slice(first, count) = Array.new(count) { |step| requests[(first + step) % requests.size] }

      # A description for the report.
      def title = "#{counted(requests.size, "request")} of #{counted(different.size, "kind")}: #{origin}"

      # @return [Hash{String => Array<String>}] without queries, which may hold secrets
      def left_out
        omitted.transform_values do |named|
          named.map { |one| name(one) }.tally.map { |name, times| repeated(name, times) }
        end
      end

      private

      def name(one) = one.respond_to?(:verb) ? "#{one.verb} #{one.path}" : one.to_s
      def repeated(name, times) = times > 1 ? "#{name} (#{times} times)" : name
    end

    # The routes of a Rails application. Another process loads the application to read them.
    module RailsRoutes
      # Writes the paths of the application's GET routes without parameters to the given file. Threads that the
      # application has started may run for ever.
      PROGRAM = <<~RUBY
        require "json"
        require "pando/doctor/subject/rails_app"
        require File.expand_path("config/environment")
        application = Rails.application
        application.reload_routes_unless_loaded if application.respond_to?(:reload_routes_unless_loaded)
        File.write(ARGV.fetch(0), JSON.generate(Pando::Doctor::Subject::RailsApp.routes(application)))
        exit!(true)
      RUBY

      class << self
        # @raise [NotMeasured] the application cannot be loaded
        def paths(config, folder)
          result, output = %w[routes routes.output].map { |name| File.join(folder, name) }
          return JSON.parse(File.read(result)) if run(config, result, output) && File.file?(result)

          said = Advice.read(output).strip
          raise NotMeasured, ["the application could not be loaded to read its routes",
                              *Advice.on(said, config.environment), Advice.last_words(said)].join("\n")
        end

        private

        def run(config, result, output)
          program = [RbConfig.ruby, *Server::Launch.load_path, "-e", PROGRAM, result]
          pid = Process.spawn(Subject.environment(config), *program,
                              pgroup: true, chdir: config.directory, in: File::NULL, out: output, err: %i[child out])
          waiter = Process.detach(pid)
          waiter.join(config.boot_timeout)&.value&.success?
        ensure
          if waiter&.alive?
            Subject.kill(waiter.pid)
            waiter.join
          end
        end
      end
    end
  end
end
