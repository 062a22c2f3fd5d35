# frozen_string_literal: true

require "pando/cluster/generations/release_facts"

module Pando
  module Cluster
    class Generations
      # Keeps track of threads that do not survive a fork. A worker that is promoted names those of its threads that
      # were never tried; the first worker of the next generation tries them. If one does not come back there, that
      # generation is refused, and no worker with such a thread is promoted any more. Workers provide the threads' keys
      # and the words about them. Owned by Generations, in the monitor.
      class LostThreads
        include Brief
        include ReleaseFacts

        # A thread that did not come back. refused: workers that have it are not promoted; else it is only reported.
        Lost = Struct.new(:key, :reason, :advice, :refused) do
          def words = "#{reason}. #{advice}"
        end

        # The most seconds that a trial may last while hardly any requests come.
        LONGEST = 60.0
        # Requests for each worker after which a trial that had too few is repeated.
        MORE = 20
        FACTS = %i[@lost @back @served @heal_cold].freeze

        # @param obstacle [#call] returns why a trial must not wait any longer, nil: it may
        def initialize(roster, generations, obstacle)
          @roster = roster
          @generations = generations
          @obstacle = obstacle
          @tried = {}
          forget
        end

        # @param kind [Symbol] one of Message::THREADS
        # @param text [String] its key, and the words about it, in lines
        def report(child, kind, text)
          key, reason, advice = text.split("\n", 3)
          return if key.nil? || @generations.discarded?(child)

          case kind
          when :thread_tried then tried(child, Lost.new(key, reason.to_s, advice.to_s, true))
          when :thread_back then back(key)
          when :thread_missing then missing(child, Lost.new(key, reason.to_s, advice.to_s, false))
          when :thread_held, :thread_gone then child.lost_threads[key] = kind == :thread_held
          end
        end

        # Asks each new worker, and after an upgrade each one, whether it has such a thread. Until it answers, it has.
        def reconcile
          return if @lost.empty?

          @roster.ready_workers.product(refused).each do |worker, thread|
            next if worker.lost_threads.key?(thread.key)

            worker.lost_threads[thread.key] = nil
            worker.order(Message.new(:lost_thread, text: thread.key))
          end
        end

        # Whether threads must come back before the upcoming generation can be judged.
        def pending? = @tried.any?

        # @return [String, nil] what the upcoming generation's first worker is to show
        def question
          thread = @tried.each_value.first
          "whether the thread or timer task that #{thread.key} starts comes back after a fork" if thread
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

        # @return [Float] seconds for which it can still last
        def remaining(seconds) = pending? ? [LONGEST - seconds, 0.0].max : 0.0

        # The upcoming generation has ended, or serves.
        def forget_trial = @tried.clear

        # @return [String, nil] why no automatic refork should begin
        def obstacle
          return unless @served

          now = served
          @served = nil if now < @served || now >= @served + (@roster.ready_workers.size * MORE)
          "few requests come, and a thread is to be tried out (`pando status`)" if @served
        end

        def fit?(worker) = refused.none? { |one| may_hold?(worker, one.key) }

        # @return [String, nil] about the thread that keeps some workers from being promoted
        def refusal
          workers = @roster.ready_workers
          refused.find { |one| workers.any? { |worker| may_hold?(worker, one.key) } }&.words
        end

        # Whether a dead mold is replaced by a cold boot, since the threads of a worker would have to be tried first.
        def heal_cold? = !!@heal_cold

        # @param generation [Generation] that serves in all slots; another release may have other threads
        def established(generation)
          super
          forget_trial
          @heal_cold = nil
        end

        def explain
          @lost.each_value.map do |one|
            held = @roster.ready_workers.count { |worker| worker.lost_threads[one.key] } if one.refused
            { location: one.key, reason: one.reason, advice: one.advice, refused: one.refused || nil,
              held: held }.compact
          end
        end

        def to_state(state) = @lost.each_value { |one| state.add("lost_thread", **one.to_h) }

        def from_state(state)
          state.all("lost_thread").each do |record|
            key, reason, advice = %i[key reason advice].map { |name| record.text(name) }
            @lost[key] = Lost.new(key, reason, advice, record.flag(:refused))
          end
        end

        private

        def forget
          @lost = {}
          @back = {}
          @served = @heal_cold = nil
        end

        def refused = @lost.each_value.select(&:refused)
        def may_hold?(worker, key) = worker.lost_threads.fetch(key, true) != false
        def served = @roster.ready_workers.sum(&:requests)

        # Only a generation that is to replace another one has a canary.
        def tried(child, thread)
          upcoming = @generations.upcoming
          return unless upcoming&.source.equal?(child)
          return @tried[thread.key] = thread if upcoming.successor? && !@lost[thread.key]&.refused

          @heal_cold = true if upcoming.heal?
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
      end
    end
  end
end
