# frozen_string_literal: true

require "pando/cluster/poison/ban"
require "pando/cluster/poison/record"
require "pando/events"

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
    end
  end
end
