# frozen_string_literal: true

require "pando/cluster/message"
require "pando/events"
require "pando/sys"

module Pando
  module Cluster
    # Requests that end their workers, by method and path. Says which lost request must not be tried again, names a path
    # that has ended several workers, and has workers refuse it where the settings say so.
    #
    # Owned by a Pool, in the monitor.
    #
    # @api private
    class Poison
      # What the settings say.
      #
      #   deaths  workers that a path may end until it is named
      #   within  seconds in which they must have ended
      #   refuse  seconds for which the path is refused then; nil: it is served on
      Terms = Struct.new(:deaths, :within, :refuse, keyword_init: true)
      DEFAULT = Terms.new(deaths: 3, within: 60.0).freeze

      # Seconds for which a death stands against another try of the same method and path.
      MINUTE = 60.0
      # Clients invent paths: of more than these the one is forgotten that has ended nobody for longest.
      PATHS = 256

      # @param roster [Roster, Roster::View] @param options [Options]
      def initialize(roster, options)
        @roster = roster
        @options = options
        @records = {}
        @bans = {}
      end

      # A process has ended; its row is still its own.
      # @param child [Child] @param oom [Boolean] the kernel has killed it for want of memory
      def died(child, oom: false)
        return unless at_request?(child)

        child.blame_job unless child.ending.killed?
        name = child.row.job_name or return
        record = recall(name)
        child.blame_job if record.within?(MINUTE)
        record.add(oom ? "out of memory" : child.ending.to_s)
        judge(record, child.job[:request])
      end

      # Called at each turn of the monitor's loop: each worker is to know what it must refuse.
      def reconcile
        return if @bans.empty?

        @bans.delete_if { |_, ban| ban.over? }
        @bans.each_value { |ban| ban.tell(@roster.workers) }
      end

      # @return [Array<Hash{Symbol => Object}>] what workers refuse now: :request, and :seconds that it lasts
      def refused = @bans.values.reject(&:over?).map(&:explain)

      private

      # Whom we have killed ourselves, no request has ended; before it is ready, it requests something from itself.
      def at_request?(child)
        !@options.jobs && child.worker? && !child.ending.nil? && !child.condemned? && !child.starting? &&
          !child.row.busy_since.nil?
      end

      def terms = @options.poison || DEFAULT

      # The one that was needed last is the last.
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

      # Workers that have ended at requests of one method and path.
      #
      # @api private
      class Record
        # Deaths that are remembered.
        MOST = 1000

        # @return [Array(String, String)] method and path
        attr_reader :name

        def initialize(name)
          @name = name
          @deaths = [] # when and how
        end

        # @param ending [String]
        def add(ending)
          @deaths.shift if @deaths.size >= MOST
          @deaths << [Sys.now, ending]
        end

        # @return [Boolean] a worker has ended within so many seconds
        def within?(seconds) = @deaths.any? && Sys.now - @deaths.last.first < seconds

        # @return [Integer] workers within so many seconds
        def count(seconds) = lately(seconds).size

        # @return [String] "exit status 4 (2), signal KILL"
        def endings(seconds)
          counts = lately(seconds).map(&:last).tally
          counts.map { |ending, count| count > 1 ? "#{ending} (#{count})" : ending }.join(", ")
        end

        # @return [Boolean] nothing was told of it for so long
        def due?(seconds) = @told_at.nil? || Sys.now - @told_at >= seconds

        def told = @told_at = Sys.now

        private

        def lately(seconds)
          now = Sys.now
          @deaths.select { |time, _| now - time < seconds }
        end
      end

      # A method and a path that workers refuse for a while. Made by the monitor, and by a worker from the record that
      # it is sent.
      #
      # @api private
      class Ban
        # At the same time.
        MOST = 64
        # A path of so many bytes may have been cut (PANDO_SUBJECT_MAX, PANDO_VERB_MAX): others begin alike.
        PATH_BYTES = 112
        METHOD_BYTES = 16

        # @param name [Array(String, String)] @return [Boolean] whether it is known as a whole
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

        # One that starts reads it before it serves. Who does not hear it now is told with the next turn.
        # @param workers [Array<Child>] all of them
        def tell(workers)
          @told &= workers
          (workers - @told).each { |worker| @told << worker if worker.order(message) }
        end

        private

        # The path is a client's: no bytes of it that a record's text would lose.
        def message
          @message ||= Message.new(:refuse, text: [@ends_at.floor(3), *name.map { |part| [part].pack("m0") }].join(" "))
        end
      end

      # What a worker refuses, for it has ended others.
      #
      # Owned by the worker, in its process.
      #
      # @api private
      class Refusals
        def initialize
          @bans = {}
        end

        # @param text [String] as the monitor has sent it
        def add(text)
          @bans.delete_if { |_, ban| ban.over? }
          ban = Ban.decode(text) or return
          @bans[ban.name] = ban if @bans.size < Ban::MOST
        end

        # @return [Integer, nil] seconds for which such a job is refused; nil: it is not
        def seconds(verb, path)
          return if @bans.empty?

          ban = @bans[[verb.b, path.b]]
          ban.seconds unless ban.nil? || ban.over?
        end
      end
    end
  end
end
