# frozen_string_literal: true

module Chaos
  # The table at the end: the faults, how the server noticed them, and what they cost the clients.
  class Report
    # For one kind of fault: how many were injected, found no process, were noticed by the server; and seconds to full
    # strength.
    Line = Struct.new(:injected, :missed, :felt, :survived, :slowest)

    def initialize(chronicle, ledger, jobs, watch)
      @chronicle = chronicle
      @ledger = ledger
      @jobs = jobs
      @watch = watch
      @lines = Hash.new { |lines, name| lines[name] = Line.new(0, 0, 0, 0, 0.0) }
      @kinds_impossible = {}
      @stalled = 0.0
      @open = []
      @began = Chaos.now
    end

    # @return [nil]
    def impossible(name, reason)
      @kinds_impossible[name] = reason
      nil
    end

    def injected(incident)
      line = @lines[incident.fault.name]
      line.injected += 1
      line.missed += 1 if incident.missed
    end

    # @param seconds [Float] to full strength @param stalled [Float] of which the machine delayed the server
    def survived(incidents, seconds, stalled)
      @stalled += stalled
      @open = incidents
      incidents.each do |incident|
        line = @lines[incident.fault.name]
        line.survived += 1
        line.slowest = [line.slowest, seconds].max
      end
    end

    # Called when the server has had time to report how it noticed the last round.
    def close_round
      @open.each do |incident|
        line = @lines[incident.fault.name]
        line.felt += 1 if @chronicle.heard(incident.fault.class.evidence) > incident.heard
      end
      @open = []
    end

    def print(out, options)
      out.puts(*faults, "", *requests, *jobs, "", *memory, *not_done, "", *verdict(options))
    end

    private

    def verdict(options)
      violations = @chronicle.violations
      return ["seed #{options.seed}: no violation in #{minutes} minutes"] if violations.empty?

      [*violations.map { |text| "VIOLATION: #{text}" }, "seed #{options.seed}, after #{minutes} minutes",
       "again: #{options.replay}", "what happened: #{options.artefacts}"]
    end

    def not_done = @kinds_impossible.map { |name, why| "not possible here: #{name} (#{why})" }

    def minutes = ((Chaos.now - @began) / 60).round(1)

    def faults
      row = "%-28s %8s %8s %8s %8s %12s"
      [format(row, "fault", "injected", "survived", "felt", "missed", "strength, s"),
       *@lines.sort.map do |name, line|
         format(row, name, line.injected, line.survived, line.felt, line.missed, line.slowest.round(2))
       end,
       format(row, "all", *%i[injected survived felt missed].map { |part| @lines.values.sum(&part) },
              @lines.values.map(&:slowest).max.to_f.round(2))]
    end

    def requests
      ["#{@ledger.total} requests (#{@ledger.asked.sort.map { |kind, count| "#{kind} #{count}" }.join(", ")})",
       "#{@ledger.failed} of them failed:",
       *@ledger.causes.sort.map { |(symptom, cause), count| "#{count.to_s.rjust(8)} #{symptom.ljust(10)} #{cause}" }]
    end

    def jobs
      return [] if @jobs.total.zero?

      ["#{@jobs.total} jobs ordered, #{@jobs.done} done, #{@jobs.open} left to the next server; begun again:",
       *@jobs.repeats.sort.map { |cause, count| "#{count.to_s.rjust(8)} #{cause}" }]
    end

    def memory
      @watch.memory.map do |role, (first, most, last)|
        format("%<role>s: %<first>.1f MiB at first, %<most>.1f at most, %<last>.1f at last", role: role, first: first,
                                                                                             most: most, last: last)
      end
    end
  end
end
