# frozen_string_literal: true

require "pando/fork_safety/libraries/active_record_pools"
require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/libraries/library"
require "pando/fork_safety/libraries/threads"

module Pando
  module ForkSafety
    module Libraries
      # The table: of each library the constant that says it is loaded. The rest is in known/, a file for each,
      # which is read once that constant exists.
      #
      # @api private
      module Known
        # Drivers and clients stand behind what manages them: in this order they are made ready for a fork.
        CONSTANTS = {
          "actioncable" => "ActionCable::Server::Base",
          "solid_cable" => "SolidCable",
          "activerecord" => "ActiveRecord::Base",
          "sequel" => "Sequel::Database",
          "mongo" => "Mongo::Client",
          "connection_pool" => "ConnectionPool",
          "redis" => "Redis",
          "redis-client" => "RedisClient",
          "dalli" => "Dalli::Client",
          "pg" => "PG::Connection",
          "mysql2" => "Mysql2::Client",
          "trilogy" => "Trilogy",
          "sqlite3" => "SQLite3::Database",
          "grpc" => "GRPC::Core",
          "google-protobuf" => "Google::Protobuf",
          "rdkafka" => "Rdkafka::Config",
          "waterdrop" => "WaterDrop::Producer",
          "karafka" => "Karafka::App",
          "bunny" => "Bunny::Session",
          "message_bus" => "MessageBus",
          "net-http-persistent" => "Net::HTTP::Persistent",
          "httpx" => "HTTPX::Session",
          "excon" => "Excon::Connection",
          "typhoeus" => "Typhoeus::Pool",
          "ethon" => "Ethon::Easy",
          "curb" => "Curl::Easy",
          "ruby-vips" => "Vips::Operation",
          "mini_racer" => "MiniRacer::Context",
          "ffi" => "FFI::Function",
          "concurrent-ruby" => "Concurrent::ThreadPoolExecutor",
          "async" => "Async::Scheduler",
          "semian" => "Semian",
          "sentry-ruby" => "Sentry::Client",
          "datadog" => "Datadog::Core",
          "ddtrace" => "Datadog::Tracing",
          "newrelic_rpm" => "NewRelic::Agent::Agent",
          "opentelemetry-sdk" => "OpenTelemetry::SDK",
          "opentelemetry-metrics-sdk" => "OpenTelemetry::SDK::Metrics",
          "honeybadger" => "Honeybadger::Agent",
          "bugsnag" => "Bugsnag::Configuration",
          "airbrake-ruby" => "Airbrake::AsyncSender",
          "rollbar" => "Rollbar::Notifier",
          "appsignal" => "Appsignal::Extension",
          "scout_apm" => "ScoutApm::Agent",
          "prometheus-client" => "Prometheus::Client",
          "statsd-instrument" => "StatsD::Instrument",
          "dogstatsd-ruby" => "Datadog::Statsd",
          "launchdarkly-server-sdk" => "LaunchDarkly::LDClient",
          "flipper" => "Flipper::Poller",
          "nokogiri" => "Nokogiri::XML::Document",
          "nio4r" => "NIO::Selector",
          "mini_mime" => "MiniMime::Db",
          "listen" => "Listen::Listener",
          "bootsnap" => "Bootsnap"
        }.freeze

        # What must be set before the library starts.
        ENVIRONMENT = { "GRPC_ENABLE_FORK_SUPPORT" => "1" }.freeze

        @read = {}

        class << self
          # @return [Array<Library>] those that are loaded now
          def loaded = CONSTANTS.keys.filter_map { |name| library(name) if loaded?(name) }

          # @param name [String] the gem's
          def loaded?(name) = !Constants.find(CONSTANTS.fetch(name)).nil?

          # @return [Array<Library>] loaded or not
          def all = CONSTANTS.keys.map { |name| library(name) }

          # @param name [String] the gem's
          # @return [Library]
          # @raise [KeyError] if there is no such row
          def library(name)
            @read.fetch(name) do
              CONSTANTS.fetch(name)
              require "pando/fork_safety/libraries/known/#{name.tr("-", "_")}"
              @read.fetch(name)
            end
          end

          # @param name [String] the gem's
          # @yield see {Declaration}
          def describe(name, &declaration)
            @read[name] = Library.new(name, CONSTANTS.fetch(name), &declaration)
          end
        end
      end
    end
  end
end
