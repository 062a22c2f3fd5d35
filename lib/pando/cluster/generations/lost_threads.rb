# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/message"
require "pando/events"

module Pando
  module Cluster
    class Generations
      # Threads that a refork would lose. A worker that is promoted names those that have never been tried out. The
      # first worker of the next generation tries them: if they do not come back there, that generation is given up,
      # and no worker that has such a thread is promoted any more. What a thread is, and the words about it, come from
      # the workers; here it is a key.
      #
      # Owned by Generations, in the monitor.
      #
      # @api private
      class LostThreads
        include Brief

        # One that did not come back. refused: no worker that has it is promoted; otherwise it is only reported.
        Lost = Struct.new(:key, :reason, :advice, :refused) do
          # @return [String]
          def words = "#{reason}. #{advice}"
        end

        # Seconds that a trial may last while hardly any requests come.
        LONGEST = 60.0
        # Requests for each worker after which a trial that had too few is worth another one.
        MORE = 20

        # @param generations [#upcoming, #refuse]
        # @param obstacle [#call] what else there is to do, nil: nothing
        def initialize(roster, generations, obstacle)
          @roster = roster
          @generations = generations
          @obstacle = obstacle
          @tried = {}
          @lost = {}
          @back = {}
        end

        # A worker has something to say about a thread.
        # @param kind [Symbol] one of Message::THREADS
        # @param text [String] its key, and the words about it, in lines
        def report(child, kind, text)
          key, reason, advice = text.split("\n", 3)
          return if key.nil?

          case kind
          when :thread_tried then tried(child, Lost.new(key, reason.to_s, advice.to_s, true))
          when :thread_back then back(key)
          when :thread_missing then missing(child, Lost.new(key, reason.to_s, advice.to_s, false))
          when :thread_held, :thread_gone then child.lost_threads[key] = kind == :thread_held
          end
        end

        # Called at each turn of the monitor's loop. A new worker, and after an upgrade each of them, is asked.
        def reconcile
          return if @lost.empty?

          @roster.ready_workers.each do |worker|
            refused.each { |one| ask(worker, one) unless worker.lost_threads.key?(one.key) }
          end
        end

        # @return [Boolean] whether the upcoming generation cannot be judged before these have come back
        def pending? = @tried.any?

        # @return [String, nil] what the upcoming generation's first worker is to show
        def question
          thread = @tried.each_value.first
          "whether the thread that #{thread.key} starts comes back after a fork" if thread
        end

        # @param seconds [Float] that the trial has lasted so far
        # @return [String, nil] why it is to end without a result
        def give_up_waiting(seconds)
          why = seconds > LONGEST ? "too few requests came" : @obstacle.call
          return unless why

          @served = served
          "it is not known yet #{question}, for that could not be tried out (#{why}): the workers stay as they are, " \
            "and the next refork tries again. #{@tried.each_value.first.advice}"
        end

        # @param seconds [Float] likewise
        # @return [Float] seconds for which threads can still be waited for
        def remaining(seconds) = pending? ? [LONGEST - seconds, 0.0].max : 0.0

        # The upcoming generation has come to an end, or serves.
        def forget_trial = @tried.clear

        # @return [String, nil] why no refork that nobody has asked for is to be begun
        def obstacle
          return unless @served

          now = served
          @served = nil if now < @served || now >= @served + (@roster.ready_workers.size * MORE)
          "few requests come, and a thread is to be tried out (`pando status`)" if @served
        end

        # @return [Boolean] whether it may be promoted
        def fit?(worker) = refused.none? { |one| may_hold?(worker, one.key) }

        # @return [String, nil] about the thread that is why some workers may not be promoted
        def refusal
          workers = @roster.ready_workers
          refused.find { |one| workers.any? { |worker| may_hold?(worker, one.key) } }&.words
        end

        # @return [Boolean] a worker in place of a mold would have to be tried out: a clean image is better
        def no_heir? = !!@no_heir

        # @param generation [Generation] that serves in all slots; another release may have other threads
        def established(generation)
          forget_trial
          @no_heir = nil
          return unless %i[boot reload].include?(generation.purpose)

          [@lost, @back].each(&:clear)
          @served = nil
        end

        # For `pando status`.
        # @return [Array<Hash{Symbol => Object}>]
        def explain
          @lost.each_value.map do |one|
            { location: one.key, reason: one.reason, advice: one.advice, refused: (true if one.refused),
              held: (holders(one) if one.refused) }.compact
          end
        end

        # @param state [Upgrade::State::PoolState]
        def to_state(state)
          @lost.each_value { |one| state.add("lost_thread", **one.to_h) }
        end

        def from_state(state)
          state.all("lost_thread").each do |record|
            key, reason, advice = %i[key reason advice].map { |name| record.text(name) }
            @lost[key] = Lost.new(key, reason, advice, record.flag(:refused))
          end
        end

        private

        def refused = @lost.each_value.select(&:refused)
        def may_hold?(worker, key) = worker.lost_threads.fetch(key, true) != false
        def holders(one) = @roster.ready_workers.count { |worker| worker.lost_threads[one.key] }
        def served = @roster.ready_workers.sum(&:requests)

        # Only a generation that is to replace another one has a canary.
        def tried(child, thread)
          upcoming = @generations.upcoming
          return unless upcoming&.source.equal?(child)
          return @tried[thread.key] = thread if upcoming.successor? && !@lost[thread.key]&.refused

          @no_heir = true if upcoming.heal?
          child.lost_threads[thread.key] = true
          @generations.refuse(thread.words)
        end

        def back(key)
          @back[key] = true
          @tried.delete(key)
          @lost.delete(key)
        end

        def missing(child, thread)
          key = thread.key
          tried = @generations.upcoming&.number == child.generation && !@tried.delete(key).nil?
          return if !tried && (@back[key] || @lost.key?(key))

          thread.refused = tried
          @lost[key] = thread
          Events.emit("finding.reported", kind: :lost_thread, severity: :error, subject: "thread", location: key,
                                          reason: thread.reason, advice: thread.advice,
                                          action: ("refused" if tried), role: child.role, **child.identity)
          @generations.refuse(thread.words) if tried
        end

        # Until it has answered it counts as having the thread.
        def ask(worker, thread)
          worker.lost_threads[thread.key] = nil
          worker.order(Message.new(:lost_thread, text: thread.key))
        end
      end
    end
  end
end
