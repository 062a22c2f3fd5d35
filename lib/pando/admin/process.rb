# frozen_string_literal: true

require "pando/admin/access"
require "pando/admin/app"
require "pando/admin/event_feed"
require "pando/admin/history"
require "pando/admin/memory_survey"
require "pando/admin/monitor"
require "pando/cluster/control/line"
require "pando/cluster/listening/listener_socket"
require "pando/errors"
require "pando/http/limits"
require "pando/http/thread_server"
require "pando/telemetry/log"

module Pando
  # What the admin process does: it serves metrics, status, events and commands at the addresses of the setting `admin`.
  # It has no code of the application and is nothing but a client of the monitor, so that it can die at any moment.
  module Admin
    # The limits of its clients: sizes in bytes, times in seconds. No request has a body worth reading.
    LIMITS = { max_header_bytes: 16_384, max_target_bytes: 4096, max_headers: 64, max_body_bytes: 4096,
               body_memory: 8192, spool: nil, header_timeout: 10.0, body_timeout: 10.0, write_timeout: 10.0,
               timeout: nil, timeout_grace: 0.0, timeout_streaming: nil, early_hints: false, stream_bodies: [] }.freeze

    # The admin process itself. Its main thread keeps in touch with the monitor, and ends with it.
    class Process
      # The descriptors that the monitor hands over: its link, the file of the history, then the listeners.
      LINK = 3
      HISTORY = 4
      # Connections at a time. Each takes a thread.
      CONNECTIONS = 64
      # Seconds between two signs of life.
      BEAT = 3.0

      # @param environment [ENV] with what the monitor says
      def self.from(environment)
        monitor, count = environment.delete("PANDO_MONITOR").to_s.split(":").map { |text| Integer(text, 10) }
        _, settings = Cluster::Control::Line.decode(environment.delete("PANDO_ADMIN").to_s)
        raise UsageError, "this is run by the pando monitor only" unless count && settings

        new(monitor, count, settings)
      end

      def initialize(monitor_pid, count, settings)
        Sys.die_with_parent!
        exit!(1) unless ::Process.ppid == monitor_pid
        ::Process.setproctitle("pando admin")
        @link = UNIXSocket.for_fd(LINK)
        @link.close_on_exec = true
        @monitor = Monitor.new { |socket| say("client", [socket]) }
        @listeners = Array.new(count) { |place| Cluster::Listening::ListenerSocket.server(HISTORY + 1 + place) }
        @access = Access.new(settings)
        @file = File.for_fd(HISTORY, "r+")
        @file.close_on_exec = true
      end

      def run
        Thread.abort_on_exception = true # a process that no longer serves must be replaced
        Telemetry::Log.attach($stderr, level: :warn)
        serve
        say("ready")
        beat until @link.wait_readable(BEAT) # the monitor has closed its end
        exit!(0)
      end

      private

      # A monitor that stands still reads nothing.
      def beat
        say("beat")
      rescue SystemCallError
        nil
      end

      def say(word, descriptors = []) = Sys.send_record(@link, Cluster::Control::Line.encode(word), descriptors)

      def serve
        survey = MemorySurvey.new(@monitor).start
        history = History.new(@monitor, survey, @file).start
        feed = EventFeed.new(@monitor, history) { |event| survey.heard(event) }
        app = App.new(@monitor, @access, feed, survey, history)
        limits = Struct.new(*LIMITS.keys, keyword_init: true).new(**LIMITS)
        server = HTTP::ThreadServer.new(app, @listeners, limits: HTTP::Limits.new(limits), most: CONNECTIONS)
        Thread.new { server.run }
      end
    end
  end
end
