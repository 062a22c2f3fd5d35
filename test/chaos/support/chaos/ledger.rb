# frozen_string_literal: true

require "chaos/fate"
require "chaos/journal"

module Chaos
  # Judges requests: each one gets the right response, or fails in a way that is explained by a process's end or a fault
  # at that time. A request that changes something runs at most once, and not at all if its client was told so.
  class Ledger
    # Seconds until we know of a death from the server's events.
    PATIENCE = 4.0
    # Seconds by which readings of two clocks may differ.
    SLACK = 2.0
    # A client that sent this much later than planned may get a 408.
    LATE = 2.0
    # Statuses that promise that the request did not run.
    NOT_DONE = [503, 408, 400, 413].freeze

    attr_reader :asked, :causes

    # @param direct [Boolean] direct mode: the workers hold the connections
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

    # @param line [String] from the load
    def take(line)
      fate = Fate.parse(line)
      @lock.synchronize do
        @asked[fate.kind] += 1
        @last = Chaos.now
        @waiting << fate
      end
      @chronicle.note("failed: #{fate}") unless fate.answered?
    end

    # @return [Float] seconds since the last request was reported
    def silence = @lock.synchronize { Chaos.now - @last }

    # @param all [Boolean] judge everything now, because no more events will come
    def judge(all: false)
      @journal.read
      check_reports
      ripe = @lock.synchronize do
        old, @waiting = @waiting.partition { |fate| all || fate.ended < Chaos.now - PATIENCE }
        old
      end
      ripe.each { |fate| judge_one(fate) }
    end

    def total = asked.values.sum
    def failed = causes.values.sum

    private

    # The report of a worker's end names a request that this worker had.
    def check_reports
      @chronicle.new_reports.each do |pid, request|
        pids = @journal.pids(request[%r{\A[A-Z]+ (?:/\w+)+/(\w+)}, 1])
        next if pids.empty? || pids.include?(pid)

        @chronicle.violate("reported with #{pid}, and done by #{pids}: #{request}")
      end
    end

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

    # The worker that had the request, if it got that far.
    def cause_by_worker(fate, done, deaths)
      workers = deaths.select { |death| Roll::SERVERS.include?(death.role) && (done.empty? || done.include?(death.pid)) }
      return if workers.empty?

      case fate.symptom
      when 502 then "worker died" if !fate.safe? || workers.any?(&:suspect) || workers.size > 1
      when 504 then "worker hung" if workers.any?(&:suspect)
      when :cut then "worker died in its answer"
      when :closed then "worker died" if @direct || fate.answered_by_worker?
      end
    end

    def cause_by_fault(fate)
      @chronicle.spells(fate.began, fate.ended, SLACK).find { |spell| spell.failures.include?(fate.symptom) }&.fault
    end
  end
end
