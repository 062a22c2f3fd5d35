# frozen_string_literal: true

require "chaos/fate"
require "chaos/journal"

module Chaos
  # Judges requests: each one is answered right, or fails in a way that a death or a fault of that time explains; and
  # what changes something is done once at most, and not at all if its client was told that it was not.
  class Ledger
    # Seconds for the server's word on a death to reach us.
    PATIENCE = 4.0
    # Seconds by which two clocks' readings of one thing may differ.
    SLACK = 2.0
    # A client that sent so much later than it meant to has only itself to blame for a 408.
    LATE = 2.0
    # Answers which say that nothing was done.
    NOT_DONE = [503, 408, 400, 413].freeze

    attr_reader :asked, :causes

    # @param direct [Boolean] the workers hold the connections
    def initialize(chronicle, journal:, direct: false)
      @chronicle = chronicle
      @direct = direct
      @journal = journal
      @lock = Mutex.new
      @asked = Hash.new(0)
      @causes = Hash.new(0)
      @waiting = []
      @last = Chaos.now
    end

    # @param line [String] of the load
    def take(line)
      fate = Fate.parse(line)
      @lock.synchronize do
        @asked[fate.kind] += 1
        @last = Chaos.now
        @waiting << fate
      end
      @chronicle.note("failed: #{fate}") unless fate.answered?
    end

    # @return [Float] seconds since the last request's fate was told
    def silence = @lock.synchronize { Chaos.now - @last }

    # @param all [Boolean] now, for no word will come any more
    def judge(all: false)
      @journal.read
      ripe = @lock.synchronize do
        old, @waiting = @waiting.partition { |fate| all || fate.ended < Chaos.now - PATIENCE }
        old
      end
      ripe.each { |fate| judge_one(fate) }
    end

    def total = asked.values.sum
    def failed = causes.values.sum

    private

    def judge_one(fate)
      done = @journal.pids(fate.id)
      fate.answered? ? check_answer(fate, done) : check_failure(fate, done)
      @journal.forget(fate.id) if fate.safe?
    end

    def check_answer(fate, done)
      @chronicle.violate("answered, and never done: #{fate}") if done.empty?
      @chronicle.violate("answered by #{fate.pid}, done by #{done}: #{fate}") unless done.include?(fate.pid)
    end

    def check_failure(fate, done)
      if done.any? && NOT_DONE.include?(fate.status) && !fate.safe?
        @chronicle.violate("refused, and yet done by #{done}: #{fate}")
      end
      cause = cause_of(fate, done)
      return @chronicle.violate("failed without a cause: #{fate}; done by #{done}") unless cause

      @causes[[fate.symptom.to_s, cause]] += 1
    end

    # @return [String, nil]
    def cause_of(fate, done)
      deaths = @chronicle.deaths(fate.began, fate.ended, SLACK)
      case fate.symptom
      when :closed, :cut then "reactor died" if died?(deaths, "reactor")
      when :untaken then "connection of a failed one"
      when 408 then "the client was late" if fate.overslept > LATE
      end || cause_by_worker(fate, done, deaths) || cause_by_fault(fate)
    end

    def died?(deaths, role) = deaths.any? { |death| death.role == role }

    # The worker that it was in, if it got as far as that.
    def cause_by_worker(fate, done, deaths)
      workers = deaths.select { |death| death.role == "worker" && (done.empty? || done.include?(death.pid)) }
      return if workers.empty?

      case fate.symptom
      when 502 then "worker died" if !fate.safe? || workers.any?(&:suspect) || workers.size > 1
      when 504 then "worker hung" if workers.any?(&:suspect)
      when :cut then "worker died in its answer"
      when :closed then "worker died" if @direct
      end
    end

    def cause_by_fault(fate)
      @chronicle.spells(fate.began, fate.ended, SLACK).find { |spell| spell.failures.include?(fate.symptom) }&.fault
    end
  end
end
