# frozen_string_literal: true

require "chaos/chronicle"
require "chaos/job_ledger"
require "chaos/ledger"
require "chaos/load"
require "chaos/orders"
require "chaos/report"
require "chaos/scene"
require "chaos/schedule"
require "chaos/stage"
require "chaos/stock"
require "chaos/strength"
require "chaos/watch"
require "fileutils"

module Chaos
  # One run: rounds of faults under load, each followed by the recovery to full strength, until the time is up or an
  # invariant is violated.
  class Campaign
    # Seconds to reach full strength after the last fault of a round.
    LIMIT = 5
    # Additional seconds if a node's successor is forked only once the node has exited: its quiet_timeout and the grace.
    FAREWELL = 5 + 2
    # Seconds for the first boot, and for the shutdown.
    PATIENCE = 60
    # Seconds until the first refork is asked for again.
    AGAIN = 15
    # Seconds until no process starts or exits any more: a service that was killed often waits for up to 30.
    QUIET = 45
    # Seconds within which at least one request has its outcome.
    SILENCE = 70
    # Seconds for the remaining jobs once no more are ordered.
    LAST_JOBS = 40

    # An injected fault.
    Incident = Struct.new(:fault, :spell, :heard, :missed) do
      def over_at = spell.began + fault.seconds
    end

    def initialize(options)
      @options = options
      FileUtils.rm_rf(options.artefacts)
      FileUtils.mkdir_p(options.artefacts)
      @chronicle = Chronicle.new(artefact("chronicle.log"), echo: options.quiet ? nil : $stdout)
      @stage = Stage.new(artefact("server.log"), options) { |event| @chronicle.hear(event) }
      @scene = Scene.new(@stage, @chronicle)
      # A GET is tried again once, and up to three times if another request of its worker ended that.
      journal = Journal.new(@stage.journal, tries: options.threads ? 4 : 2) { |text| @chronicle.violate(text) }
      @ledger = Ledger.new(@chronicle, journal: journal, direct: options.direct)
      @jobs = JobLedger.new(@chronicle, @stage.job_journal, @scene.stall, alone: alone?)
      @orders = Orders.new(@stage, @jobs, options.seed) if options.nodes
      @schedule = Schedule.new(options.seed, options.only, artefact("schedule.jsonl"), pools: options.other_pools)
      @watch = Watch.new(@scene)
      @report = Report.new(@chronicle, @ledger, @jobs, @watch)
    end

    # @return [Boolean] whether all invariants held
    def run
      @deadline = Chaos.now + (@options.minutes * 60)
      begin_all
      (1..).each { |number| keep_on? ? round(@schedule.round(number)) : break }
      end_all
      conclude
    rescue StandardError => e
      @chronicle.violate("the run itself failed: #{e.full_message(highlight: false)}")
      conclude
    ensure
      @watch.stop
      [@load, @orders].compact.each(&:stop)
      @stage.clean_up
    end

    private

    def artefact(name) = File.new(File.join(@options.artefacts, name), "w").tap { |file| file.sync = true }

    def alone? = @options.node_manners&.include?("exclusive")
    def sound? = @chronicle.violations.empty?
    def keep_on? = Chaos.now < @deadline && sound?

    def begin_all
      @stage.start
      raise "the server does not come up" unless @scene.wait(PATIENCE) { @scene.roll&.quiet? }

      @before = stock
      @watch.start
      @load = LoadProcess.new(@stage, @options.seed) { |line| @ledger.take(line) }
      @orders&.start
    end

    # Reforks first, so that there is a mold of the same kind as at the end. On a busy machine a refork may take longer
    # than the server allows.
    def stock
      roll = nil
      (PATIENCE / AGAIN).times { roll ||= reforked }
      Stock.new(@stage.pid, roll || raise("the server does not refork"))
    end

    def reforked
      @stage.signal("USR2")
      @scene.wait(AGAIN) { @scene.roll&.then { |now| now if now.quiet? && now.generation.positive? } }
    end

    # Runs each fault on a thread, so that a slow fault does not prolong another.
    def round(round)
      sleep round.pause
      @report.close_round
      began = Chaos.now
      incidents = round.items.map { |item| Thread.new { bring_about(item, began + item.at) } }.filter_map(&:value)
      incidents.each { |incident| @report.injected(incident) }
      await_strength(incidents)
      @ledger.judge
      @jobs.judge
      @chronicle.violate("no request has had an outcome for #{@ledger.silence.round} s") if @ledger.silence > SILENCE
    end

    # @return [Incident, nil]
    def bring_about(item, moment)
      obstacle = item.kind.obstacle(@stage)
      return @report.impossible(item.kind.label, obstacle) if obstacle

      sleep [moment - Chaos.now, 0].max
      fault = item.kind.new(@scene, item.plan)
      @chronicle.note("fault: #{fault}")
      incident = Incident.new(fault, @chronicle.begin_spell(fault), @chronicle.heard(item.kind.evidence))
      incident.missed = !fault.inject
      incident.tap { |one| lift(one) }
    end

    def lift(incident)
      sleep [incident.over_at - Chaos.now, 0].max
      incident.fault.lift
    ensure
      @chronicle.end_spell(incident.spell)
      @chronicle.note("lifted: #{incident.fault}") if incident.fault.seconds.positive?
    end

    def await_strength(incidents)
      strength = Strength.new(@scene)
      seconds, stalled = strength.await(alone? ? LIMIT + FAREWELL : LIMIT)
      return @chronicle.violate(strength.to_s) unless seconds

      @report.survived(incidents, seconds, stalled)
    end

    def end_all
      [@load, @orders].compact.each(&:stop)
      return unless sound?

      return @chronicle.violate("jobs are not done #{LAST_JOBS} s after the last one was ordered") unless jobs_done
      return @chronicle.violate("no quiet #{QUIET} s after the last fault: #{@scene.roll}") unless quiet

      excess = excess_at_last
      @chronicle.violate(excess.join("; ")) if excess.any?
      @watch.stop
      order_last
      stop_server
      @ledger.judge(all: true)
      @jobs.conclude(@stage)
    end

    def quiet = @scene.patiently(QUIET) { @scene.roll&.quiet? }

    def jobs_done
      @scene.patiently(LAST_JOBS) do
        @jobs.judge
        @jobs.open.zero?
      end
    end

    # A last connection may still be about to close, and a reload that waited for the one before it may begin only now.
    def excess_at_last
      excess = []
      @scene.patiently(QUIET) do
        roll = @scene.roll
        (excess = Stock.new(@stage.pid, roll).excess(@before)).empty? if roll&.quiet?
      end
      excess
    end

    # Leaves some jobs running and some waiting when the server is told to stop.
    def order_last
      @orders&.last
      @scene.wait(2) { @stage.jobs_taken.any? } if @orders
    end

    def stop_server
      status = @stage.stop(PATIENCE)
      return @chronicle.violate("the server does not end") unless status

      @chronicle.violate("the server ended with #{status}") unless status.success?
      left = @stage.processes
      @chronicle.violate("left behind: #{left.map { |one| one.to_a.join(" ") }.join(", ")}") if left.any?
    end

    # The artefacts include what the nodes have written.
    def conclude
      FileUtils.cp(@stage.job_journal, @options.artefacts) if File.exist?(@stage.job_journal)
      @report.close_round
      @report.print($stdout, @options)
      FileUtils.rm_rf(@options.artefacts) if sound? && !@options.keep
      sound?
    end
  end
end
