# frozen_string_literal: true

require "pando/cluster/options"

module Pando
  module Cluster
    # Requests that end their workers, by method and path. Decides which lost request must not be tried again, reports a
    # path that has ended several workers, and makes workers refuse it if the settings say so. Owned by a Pool.
    class Poison
      # Seconds after a death in which the same method and path is not tried again.
      MINUTE = 60.0
      # Clients invent paths. Beyond so many, the path whose last death is longest ago is forgotten.
      PATHS = 256
      # Deaths of one path that are remembered.
      DEATHS = 1000

      # The deaths of workers at requests of one method and path: when, and how they ended.
      Record = Struct.new(:deaths, :told_at) do
        def endings(seconds) = deaths.filter_map { |time, ending| ending if Sys.now - time < seconds }
      end
      private_constant :Record

      def initialize(roster, options)
        @roster = roster
        @options = options
        @records = {}
        @bans = {}
      end

      # A process has ended. Its row on the scoreboard has no new owner yet.
      def died(child, oom: false)
        return unless at_request?(child)

        child.suspect_job unless child.ending.killed?
        blame_the_retried(child)
        name = child.blamed_job_name or return
        record = recall(name)
        child.suspect_job if record.endings(MINUTE).any?
        record.deaths = [*record.deaths.last(DEATHS - 1), [Sys.now, oom ? "out of memory" : child.ending.to_s]]
        judge(name, record, child.job[:request])
      end

      def reconcile
        @bans.delete_if { |_, ban| ban.over? }
        @bans.each_value { |ban| ban.tell(@roster.workers) }
      end

      # @return [Array<Hash{Symbol => Object}>] what workers refuse now: :request, and for how many more :seconds
      def refused = @bans.values.reject(&:over?).map(&:explain)

      # All workers are told again after an upgrade, which changes nothing for those that know it.
      def to_state(state) = @bans.each_value { |ban| ban.to_state(state) }

      def from_state(state)
        state.all(Ban::RECORD).first(Ban::MOST).each do |record|
          ban = Ban.new(record.bytes(:verb), record.bytes(:path), record.number(:ends_at))
          @bans[ban.name] = ban
        end
      end

      private

      # Native code may crash without the interpreter lock, while another request has it. Then the request is retried,
      # because it was beside the one that was blamed, and the next worker crashes as well. A request that has seen two
      # crashes is likelier than another, unless that one's path has ended a worker too. Kills from outside hit anybody.
      def blame_the_retried(child)
        return unless child.ending.crash?

        retried = child.retried_job or return
        known = @records[child.blamed_job_name]
        child.blame(retried) if known.nil? || known.endings(MINUTE).empty?
      end

      # The monitor's kills are not the request's fault. Before it is ready, a worker requests something from itself.
      def at_request?(child)
        !@options.jobs && child.worker? && !child.ending.nil? && !child.condemned? && !child.starting? &&
          !child.row.busy_since.nil?
      end

      def terms = @options.poison

      # The record that was used last comes last.
      def recall(name)
        record = @records.delete(name) || Record.new([])
        @records.shift if @records.size >= PATHS
        @records[name] = record
      end

      def judge(name, record, request)
        endings = record.endings(terms.within)
        return if endings.size < terms.deaths

        refused = ban(name)
        return unless refused || record.told_at.nil? || Sys.now - record.told_at >= terms.within

        record.told_at = Sys.now
        Events.emit("request.poison", request: request, count: endings.size, within: terms.within,
                                      reason: sum_up(endings), refused: refused)
      end

      # @return [String] "exit status 4 (2), signal KILL"
      def sum_up(endings)
        endings.tally.map { |ending, count| count > 1 ? "#{ending} (#{count})" : ending }.join(", ")
      end

      def ban(name)
        return unless terms.refuse && Ban.possible?(name) && (@bans.key?(name) || @bans.size < Ban::MOST)
        return if @bans[name] && !@bans[name].over?

        @bans[name] = Ban.new(*name, Sys.now + terms.refuse).tap { |ban| ban.tell(@roster.workers) }
        terms.refuse
      end

      # A method and a path that workers refuse for a while. Made by the monitor; workers decode it from a message.
      class Ban
        # Bans at the same time.
        MOST = 64
        # A path of so many bytes may have been cut (PANDO_SUBJECT_MAX, PANDO_VERB_MAX) and stand for several.
        PATH_BYTES = 112
        METHOD_BYTES = 16
        # Its word in an upgrade's state.
        RECORD = "refused_request"

        # @return [Boolean] whether it was not cut
        def self.possible?(name) = name[0].bytesize < METHOD_BYTES && name[1].bytesize < PATH_BYTES

        def self.decode(text)
          ends_at, verb, path = text.split(" ", 3)
          ends_at = Float(ends_at || "", exception: false)
          new(*[verb, path].map { |part| part.unpack1("m0") }, ends_at) if ends_at && path
        rescue ArgumentError
          nil
        end

        # Method and path.
        attr_reader :name

        # @param ends_at [Float] on Sys.now, which is the same in all processes
        def initialize(verb, path, ends_at)
          @name = [verb.b, path.b]
          @ends_at = ends_at
          @told = []
        end

        def over? = Sys.now >= @ends_at

        # @return [Integer] seconds that it lasts, one at least
        def seconds = (@ends_at - Sys.now).ceil.clamp(1..)

        def to_state(state)
          verb, path = name
          state.add(RECORD, verb: verb, path: path, ends_at: @ends_at)
        end

        def explain = { request: name.join(" "), seconds: @ends_at - Sys.now }

        # A worker that is starting reads it before it serves. A worker whose link is full is told in the next turn.
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

        def add(text)
          @bans.delete_if { |_, ban| ban.over? }
          ban = Ban.decode(text) or return
          @bans[ban.name] = ban if @bans.size < Ban::MOST
        end

        # @return [Integer, nil] seconds for which such a job is still refused; nil: it is not
        def seconds(verb, path)
          ban = @bans[[verb.b, path.b]] if @bans.any?
          ban.seconds unless ban.nil? || ban.over?
        end
      end
    end
  end
end
