# frozen_string_literal: true

require "pando/cluster/message"
require "pando/events"
require "pando/sys"

module Pando
  module Cluster
    # Requests that end their workers, by method and path. Decides which lost request must not be tried again, reports a
    # path that has ended several workers, and makes workers refuse it if the settings say so. Owned by a Pool, in the
    # monitor.
    class Poison
      # The settings.
      #
      #   deaths  workers that a path may end before it is reported
      #   within  seconds within which they must have ended
      #   refuse  seconds for which workers then refuse the path; nil: they do not
      Terms = Struct.new(:deaths, :within, :refuse, keyword_init: true)
      DEFAULT = Terms.new(deaths: 3, within: 60.0).freeze

      # Seconds after a death in which the same method and path is not tried again.
      MINUTE = 60.0
      # Clients invent paths. Beyond so many, the path whose last death is longest ago is forgotten.
      PATHS = 256

      # @param roster [Roster, Roster::View] @param options [Options]
      def initialize(roster, options)
        @roster = roster
        @options = options
        @records = {}
        @bans = {}
      end

      # A process has ended. Its row on the scoreboard has no new owner yet.
      # @param child [Child] @param oom [Boolean] the kernel's OOM killer ended it
      def died(child, oom: false)
        return unless at_request?(child)

        child.suspect_job unless child.ending.killed?
        name = child.row.job_name or return
        record = recall(name)
        child.suspect_job if record.within?(MINUTE)
        record.add(oom ? "out of memory" : child.ending.to_s)
        judge(record, child.job[:request])
      end

      # Called at each turn of the monitor's loop. Tells each worker what to refuse.
      def reconcile
        return if @bans.empty?

        @bans.delete_if { |_, ban| ban.over? }
        @bans.each_value { |ban| ban.tell(@roster.workers) }
      end

      # @return [Array<Hash{Symbol => Object}>] what workers refuse now: :request, and for how many more :seconds
      def refused = @bans.values.reject(&:over?).map(&:explain)

      private

      # A worker that the monitor killed was not ended by its request. Before it is ready, a worker requests something
      # from itself.
      def at_request?(child)
        !@options.jobs && child.worker? && !child.ending.nil? && !child.condemned? && !child.starting? &&
          !child.row.busy_since.nil?
      end

      def terms = @options.poison || DEFAULT

      # The record that was used last comes last.
      def recall(name)
        record = @records.delete(name) || Record.new(name)
        @records.shift if @records.size >= PATHS
        @records[name] = record
      end

      def judge(record, request)
        count = record.count(terms.within)
        return if count < terms.deaths

        refused = ban(record.name)
        return unless refused || record.due?(terms.within)

        record.told
        Events.emit("request.poison", request: request, count: count, within: terms.within,
                                      reason: record.endings(terms.within), refused: refused)
      end

      # @return [Float, nil] seconds
      def ban(name)
        return unless terms.refuse && Ban.possible?(name) && (@bans.key?(name) || @bans.size < Ban::MOST)
        return if @bans[name] && !@bans[name].over?

        @bans[name] = Ban.new(*name, Sys.now + terms.refuse).tap { |ban| ban.tell(@roster.workers) }
        terms.refuse
      end

      # The deaths of workers at requests of one method and path. Owned by Poison, in the monitor.
      class Record
        # Deaths that it remembers.
        MOST = 1000

        # @return [Array(String, String)] method and path
        attr_reader :name

        def initialize(name)
          @name = name
          @deaths = [] # pairs of time and ending
        end

        # @param ending [String]
        def add(ending)
          @deaths.shift if @deaths.size >= MOST
          @deaths << [Sys.now, ending]
        end

        # @return [Boolean] whether a worker ended within so many seconds
        def within?(seconds) = @deaths.any? && Sys.now - @deaths.last.first < seconds

        # @return [Integer] workers within so many seconds
        def count(seconds) = lately(seconds).size

        # @return [String] "exit status 4 (2), signal KILL"
        def endings(seconds)
          counts = lately(seconds).map(&:last).tally
          counts.map { |ending, count| count > 1 ? "#{ending} (#{count})" : ending }.join(", ")
        end

        # @return [Boolean] whether it was not reported within so many seconds
        def due?(seconds) = @told_at.nil? || Sys.now - @told_at >= seconds

        def told = @told_at = Sys.now

        private

        def lately(seconds)
          now = Sys.now
          @deaths.select { |time, _| now - time < seconds }
        end
      end

      # A method and a path that workers refuse for a while. The monitor makes one; each worker decodes it from a
      # message.
      class Ban
        # Bans at the same time.
        MOST = 64
        # A path of so many bytes may have been cut (PANDO_SUBJECT_MAX, PANDO_VERB_MAX) and stand for several.
        PATH_BYTES = 112
        METHOD_BYTES = 16

        # @param name [Array(String, String)] @return [Boolean] whether it was not cut
        def self.possible?(name) = name[0].bytesize < METHOD_BYTES && name[1].bytesize < PATH_BYTES

        # In a worker.
        # @param text [String] of a message
        # @return [Ban, nil] nil when malformed
        def self.decode(text)
          ends_at, verb, path = text.split(" ", 3)
          ends_at = Float(ends_at || "", exception: false)
          new(*[verb, path].map { |part| part.unpack1("m0") }, ends_at) if ends_at && path
        rescue ArgumentError
          nil
        end

        # @param ends_at [Float] on Sys.now, which is the same in all processes
        def initialize(verb, path, ends_at)
          @verb = verb.b
          @path = path.b
          @ends_at = ends_at
          @told = []
        end

        def name = [@verb, @path]
        def over? = Sys.now >= @ends_at

        # @return [Integer] seconds that it lasts, one at least
        def seconds = (@ends_at - Sys.now).ceil.clamp(1..)

        # @return [Hash{Symbol => Object}] see Poison#refused
        def explain = { request: name.join(" "), seconds: @ends_at - Sys.now }

        # A worker that is starting reads it before it serves. A worker whose link is full is told in the next turn.
        # @param workers [Array<Child>] all of them
        def tell(workers)
          @told &= workers
          (workers - @told).each { |worker| @told << worker if worker.order(message) }
        end

        private

        # Encoded, since the path comes from a client and may hold bytes that are not text.
        def message
          @message ||= Message.new(:refuse, text: [@ends_at.floor(3), *name.map { |part| [part].pack("m0") }].join(" "))
        end
      end

      # The requests that a worker refuses since they have ended other workers. Owned by the worker, in its process.
      class Refusals
        def initialize
          @bans = {}
        end

        # @param text [String] as the monitor sent it
        def add(text)
          @bans.delete_if { |_, ban| ban.over? }
          ban = Ban.decode(text) or return
          @bans[ban.name] = ban if @bans.size < Ban::MOST
        end

        # @return [Integer, nil] seconds for which such a job is still refused; nil: it is not
        def seconds(verb, path)
          return if @bans.empty?

          ban = @bans[[verb.b, path.b]]
          ban.seconds unless ban.nil? || ban.over?
        end
      end
    end
  end
end
