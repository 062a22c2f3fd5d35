# frozen_string_literal: true

require "pando/events"

module HTTPSupport
  # Stands for Cluster::LaneDescriptors.
  Lane = Struct.new(:number, :eventfd, :socket, :memory)

  # Stands in for Cluster::Worker: records the calls.
  class FakeWorker
    attr_reader :calls, :hooks
    attr_accessor :deadline_passed, :leaving, :connections

    def initialize
      @calls = []
      @hooks = {}
      @deadline_passed = false
    end

    def slot = 1
    def generation = 2
    def requests = @calls.reverse.take_while { |call| call != [:forget_jobs] }.count([:job_finished])
    def refused_for(*) = nil
    def job_started(*arguments) = @calls << [:job_started, *arguments]
    def job_finished = @calls << [:job_finished]
    def job_failed = @failures = failures + 1
    def job_timed_out = @calls << [:job_timed_out]
    def failures = @failures || 0
    def forget_jobs = @calls << [:forget_jobs]
    def soft_deadline_passed? = @deadline_passed
    def lock_wait = 0.0
    def leave(reason) = @calls << [:leave, reason]
    def leaving? = @leaving
    def hook?(name) = @hooks.key?(name)

    def reader_lost(*arguments) = @calls << [:reader_lost, *arguments]
    def job_streams = @calls << [:job_streams]
    def job_retried = @calls << [:job_retried]

    def job_deadline(*arguments)
      @calls << [:job_deadline, *arguments]
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def run_hook(name, *arguments)
      @calls << [:run_hook, name]
      @hooks[name]&.call(*arguments)
    end

    def called(name) = @calls.select { |call| call.first == name }
  end

  # Stands in for Pando::Config.
  SETTINGS = {
    slow_log: nil,
    max_header_bytes: 4096, max_target_bytes: 512, max_headers: 20, max_body_bytes: 100_000, body_memory: 1000,
    spool: nil,
    header_timeout: 5.0, body_timeout: 5.0, write_timeout: 5.0, timeout: 20.0, timeout_grace: 2.0,
    timeout_streaming: nil,
    early_hints: false, stream_bodies: [], self_test: nil, rollout_safe_paths: [],
    gc_between_requests: 1, gc_major: :ruby, trusted_proxies: %w[loopback unix]
  }.freeze
  Settings = Struct.new(*SETTINGS.keys, keyword_init: true)

  def self.settings(**changes)
    Settings.new(**SETTINGS, **changes)
  end

  # Collects the events emitted while the block runs.
  module Events
    def events_of
      seen = []
      handle = Pando::Events.subscribe { |event| seen << event }
      yield
      seen
    ensure
      Pando::Events.unsubscribe(handle)
    end
  end
end
