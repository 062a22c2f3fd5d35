# frozen_string_literal: true

require "pando/errors"
require "pando/events"
require "pando/fork_safety/audit"
require "pando/sys"

module Pando
  class Server
    # Applies the configuration to the findings of the audit: in a worker that is about to be promoted, in each new mold
    # before it is ready, and in the processes that are forked from it. ThreadWatch deals with Ruby threads. Made by
    # ForkCare in a mold that boots, and inherited by all that is forked from it. See docs/audit.md.
    class ForkAudit
      # A process must not go on, or a worker must not be promoted.
      class Refused < Pando::Error; end

      SETTINGS = {
        shared_socket: :fork_safety_sockets, shared_pipe: :fork_safety_pipes, shared_position: :fork_safety_files,
        shared_event_source: :fork_safety_events, native_thread: :fork_safety_native_threads
      }.freeze
      # Reported in workers, too: everything else was reported when their mold was audited.
      IN_WORKERS = %i[shared_socket].freeze
      # Events of one audit.
      MOST = 20

      def initialize(config)
        @config = config
      end

      # Before the application is loaded.
      def begin
        @booted = Process.pid
        ForkSafety::Audit.begin
        ForkSafety::Audit.trace if @config.fork_safety_trace
      end

      def before_fork(role, of)
        ForkSafety::Audit.census
        return unless of == :mold && role.role == :worker

        findings = wanted(ForkSafety::Audit.threads)
        tell(findings, role)
        refuse(findings.select { |one| %i[refuse fail].include?(policy(one)) })
      end

      # @param role [Cluster::Role] of a process that is almost ready
      def examine(role)
        mold = role.role == :mold
        return unless mold || connection?(role)

        report = ForkSafety::Audit.run(forks: mold, own: role.ios, keep: @config.keep_io)
        findings = wanted(report)
        findings = findings.select { |one| IN_WORKERS.include?(one.kind) } unless mold
        close(report, findings)
        tell(findings, role)
        summarize(report, findings, role) if mold
        refuse_blind(report)
        refuse(findings.select { |one| forbidden?(one) })
      end

      # In a mold, now and then.
      def tick(role)
        watch = @growth if @watched == Process.pid
        watch ||= begin_watch(role)
        finding = watch.check
        tell([finding], role) if finding
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM
        nil # a later call will check it
      end

      # @return [Boolean] whether this is the mold of a cold boot
      def cold? = @booted == Process.pid

      private

      # Most workers have no connection that they could have inherited. A full audit of each of them would cost more
      # private memory than all the rest of its start.
      def connection?(role)
        Sys.connection_beside?(role.ios.map(&:fileno))
      rescue SystemCallError
        true # the full audit reports it
      end

      def policy(finding) = SETTINGS.key?(finding.kind) ? @config.public_send(SETTINGS[finding.kind]) : :report
      def wanted(report) = report.findings.reject { |one| one.kind == :lost_thread || policy(one) == :allow }

      # A note is no reason to act, unless it is a connection: there the setting applies to all.
      def grave?(finding) = finding.severity != :note || finding.kind == :shared_socket

      def closable?(finding) = policy(finding) == :close && grave?(finding)

      def forbidden?(finding)
        return false unless grave?(finding)

        policy(finding) == :fail || (policy(finding) == :refuse && !(finding.kind == :native_thread && cold?))
      end

      def close(report, findings)
        doomed = findings.select { |one| closable?(one) }
        ForkSafety::Audit.close(doomed.map { |one| report.subject_of(one) })
      end

      # Notes stay unsaid, unless something is done.
      def told(findings) = findings.reject { |one| one.severity == :note && action(one).nil? }

      # Reports equal findings once.
      def tell(findings, role)
        alike = told(findings).group_by { |one| [one.severity, one.fingerprint, one.location] }.values
        alike.first(MOST).each { |some| emit(some.first, some.size, role) }
      end

      def emit(one, count, role)
        Events.emit("finding.reported", kind: one.kind, severity: one.severity, subject: one.subject,
                                        location: one.location, reason: one.message, advice: one.advice,
                                        action: action(one), count: count, **identity(role))
      end

      def action(finding)
        return "closed" if closable?(finding)

        "refused" if forbidden?(finding)
      end

      def identity(role)
        slot = role.slot unless role.role == :mold
        { role: role.role, slot: slot, generation: role.generation, pid: Process.pid }.compact
      end

      def summarize(report, findings, role)
        Events.emit("audit.finished", generation: role.generation, pid: Process.pid,
                                      descriptors: report.descriptors.size, findings: told(findings).size,
                                      seconds: report.seconds.round(4), reason: report.error)
      end

      # Descriptors that cannot be read may be shared ones.
      def refuse_blind(report)
        return unless report.error && @config.fork_safety_sockets == :refuse

        raise Refused, "fork_safety sockets: :refuse, and the descriptors cannot be read: #{report.error}"
      end

      def refuse(findings)
        first = findings.first or return
        others = " (and #{findings.size - 1} more)" if findings.size > 1
        at = " (#{first.location})" if first.location
        raise Refused, "#{first.message}#{at}: refused by #{title(first)}#{others}"
      end

      def title(finding) = "fork_safety #{SETTINGS.fetch(finding.kind).to_s.delete_prefix("fork_safety_")}:"

      def begin_watch(role)
        @watched = Process.pid
        @growth = ForkSafety::Audit::Growth.new(own: role.ios)
      end
    end
  end
end
