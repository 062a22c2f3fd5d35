# frozen_string_literal: true

require "json"
require "pando/admin/metrics"
require "pando/admin/monitor"
require "pando/cli/status_report"
require "pando/slow_entry"

module Pando
  module Admin
    # The files of the dashboard: a page, its styles and its scripts. They hold no data and no secret, so that everybody
    # may load them; what the page shows it asks for itself, with the token if one is needed.
    module Dashboard
      PATH = "/dashboard"
      TYPES = { ".html" => "text/html; charset=utf-8", ".css" => "text/css; charset=utf-8",
                ".js" => "text/javascript; charset=utf-8" }.freeze
      # Nothing is loaded from elsewhere, and no code runs that is not in a file here.
      POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " \
               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

      # @return [Hash{String => Array(String, String)}] the type and the path of a file by the path of its address
      FILES = Dir[File.join(__dir__, "dashboard/**/*.{html,css,js}")].to_h do |file|
        name = file.delete_prefix(File.join(__dir__, "dashboard"))
        [name == "/index.html" ? PATH : PATH + name, [TYPES.fetch(File.extname(file)), file]]
      end.freeze

      def self.read(path)
        type, file = FILES.fetch(path)
        [type, File.read(file, encoding: "UTF-8")]
      end
    end

    # The Rack application of the admin process.
    class App
      # What a path does: the methods that it takes, who may use it (:all, also at an address that other machines can
      # reach; :readers; :holders of the token), and the method that answers.
      Route = Struct.new(:verbs, :access, :action)
      READ = %w[GET HEAD].freeze
      COMMAND = %w[POST].freeze

      # The parameters of each command.
      PARAMETERS = { "refork" => %w[pool force wait], "reload" => %w[now cancel wait],
                     "scale" => %w[workers pool wait], "drain" => %w[undo wait], "quiet" => %w[undo wait],
                     "kill" => %w[slot pool pid wait], "stack" => %w[slot pool pid] }.freeze

      ROUTES = {
        "/" => Route.new(READ, :readers, :index),
        "/metrics" => Route.new(READ, :all, :metrics),
        "/livez" => Route.new(READ, :all, :alive),
        "/readyz" => Route.new(READ, :all, :ready),
        "/status.json" => Route.new(READ, :readers, :status),
        "/events" => Route.new(READ, :readers, :events),
        "/slow" => Route.new(READ, :readers, :slow),
        "/slow.log" => Route.new(READ, :readers, :slow_stacks),
        "/history.json" => Route.new(READ, :readers, :history),
        "/live" => Route.new(READ, :readers, :live),
        **Dashboard::FILES.keys.sort.to_h { |path| [path, Route.new(READ, :all, :dashboard)] },
        **PARAMETERS.keys.to_h { |word| ["/#{word}", Route.new(COMMAND, :holders, :command)] },
        "/stack" => Route.new(COMMAND, :holders, :stack)
      }.freeze

      # Parameters that a command cannot do without.
      NEEDED = { "scale" => %w[workers], "kill" => %w[slot], "stack" => %w[slot] }.freeze
      # Whole numbers.
      NUMBERS = %w[workers slot pid].freeze
      NUMBER = /\A\d{1,9}\z/
      # Those that are on or off: 1 or 0.
      FLAGS = %w[wait force now cancel undo].freeze
      ON_OR_OFF = %w[0 1].freeze
      # Seconds that a command may take, and after which an answer without its outcome says that it has begun.
      PATIENCE = 300.0
      BEGUN = 0.5
      # Seconds in which a worker's stacks come, if it must be looked at from outside.
      STACK = 15.0

      HEADERS = { "cache-control" => "no-store", "x-content-type-options" => "nosniff", "x-frame-options" => "DENY",
                  "content-security-policy" => "default-src 'none'; frame-ancestors 'none'",
                  "referrer-policy" => "no-referrer", "cross-origin-resource-policy" => "same-origin" }.freeze
      OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
      PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
      # Seconds between two states that /live tells.
      LIVE = 1.0
      # Of the keys of /status.json. It changes when one of them is removed or means something else.
      SCHEMA = 1

      def initialize(monitor, access, feed, survey, history)
        @monitor = monitor
        @access = access
        @feed = feed
        @survey = survey
        @history = history
      end

      def call(env)
        route = ROUTES[env["PATH_INFO"]]
        denied = @access.check(env, open: route.nil? || route.access == :all, command: route&.access == :holders)
        return failure(denied.status, denied.reason) if denied
        return failure(404, "there is no such page; see /") unless route
        return failure(405, "this takes #{route.verbs.first}", "allow" => route.verbs.join(", ")) unless
          route.verbs.include?(env["REQUEST_METHOD"])

        send(route.action, env)
      rescue Monitor::Unavailable => e
        failure(503, e.message)
      end

      private

      def index(_env)
        paths = ROUTES.reject { |path, _| path == "/" || path.start_with?("#{Dashboard::PATH}/") }
        text(200, "Pando #{VERSION}\n#{paths.map { |path, route| "#{route.verbs.first} #{path}\n" }.join}")
      end

      def metrics(env)
        open = env["HTTP_ACCEPT"].to_s.include?("application/openmetrics-text")
        families = Metrics.families(@monitor.snapshot, @survey)
        respond(200, open ? OPENMETRICS : PROMETHEUS, Exposition.new(openmetrics: open).write(families))
      end

      def alive(_env)
        @monitor.snapshot
        text(200, "ok\n")
      end

      def ready(_env)
        obstacle = @monitor.snapshot.obstacle
        obstacle ? text(503, "#{obstacle}\n") : text(200, "ok\n")
      end

      def status(_env) = json(200, report)

      def report
        records = @monitor.snapshot("status").records
        { "schema" => SCHEMA, **CLI::StatusReport.new(records, memory: @survey.method(:[])).to_h }
      end

      def slow(_env)
        json(200, { "schema" => SCHEMA, "requests" => slow_requests })
      rescue Monitor::Refused => e
        failure(404, e.message)
      end

      # The end of the slow log's file.
      def slow_stacks(_env)
        text(200, SlowEntry.newest(@monitor.snapshot("slow").one("log")["path"]))
      rescue Monitor::Refused, SlowEntry::Unreadable => e
        failure(404, e.message)
      end

      def events(env) = follow(@feed.stream(parameters(env)["name"].to_s))

      def follow(stream)
        return failure(503, "#{EventFeed::FOLLOWERS} clients follow the events already") unless stream

        respond(200, "text/event-stream; charset=utf-8", stream)
      end

      # Events as they happen, and each second the status.
      def live(_env)
        sample = nil
        follow(@feed.stream("", every: LIVE) do
          before = sample
          sample = @history.newest
          texts = ["event: status\ndata: #{JSON.generate(report)}\n\n"]
          texts << "event: sample\ndata: #{sample}\n\n" if sample && sample != before
          texts.join
        rescue Monitor::Unavailable => e
          "event: silent\ndata: #{JSON.generate("error" => e.message)}\n\n"
        end)
      end

      def history(_env) = respond(200, "application/json", @history.json(slow_requests_if_known))

      # The past needs no monitor.
      def slow_requests_if_known
        { "slow" => slow_requests }
      rescue Monitor::Refused
        { "slow" => nil } # there is no slow log
      rescue Monitor::Unavailable
        {}
      end

      def slow_requests = @monitor.snapshot("slow").all("slow")

      def dashboard(env)
        answer = respond(200, *Dashboard.read(env["PATH_INFO"]))
        answer[1]["content-security-policy"] = Dashboard::POLICY
        answer
      end

      # Where a worker's threads stand now.
      def stack(env)
        given = parameters(env)
        wrong = wrong_parameter("stack", given) and return wrong
        lines = []
        outcome, said = @monitor.command("stack", given, STACK) do |word, pairs|
          lines << pairs["text"] if word == "line"
        end
        outcome == "ok" ? text(200, "#{lines.join("\n")}\n") : outcome(outcome, said)
      end

      # @return [Array, nil] the answer to it; nil: there is none
      def wrong_parameter(word, given)
        wrong = (given.keys - PARAMETERS.fetch(word)).first
        return failure(400, "/#{word} takes no parameter '#{wrong}'") if wrong

        missing = (NEEDED.fetch(word, []) - given.keys).first
        return failure(400, "#{missing} is missing") if missing

        malformed = given.filter_map { |name, value| malformed(name, value) }.first
        failure(400, malformed) if malformed
      end

      def malformed(name, value)
        return "#{name} is there several times" if value.nil?
        return ("#{name} must be 0 or 1" unless ON_OR_OFF.include?(value)) if FLAGS.include?(name)
        return ("#{name} must be a whole number below a billion" unless value.match?(NUMBER)) if NUMBERS.include?(name)

        "#{name} is empty" if value.empty?
      end

      def command(env)
        word = env["PATH_INFO"].delete_prefix("/")
        given = parameters(env)
        wrong = wrong_parameter(word, given) and return wrong

        flags, pairs = given.partition { |name, _| FLAGS.include?(name) }.map(&:to_h)
        flags.each { |name, value| pairs[name] = "yes" if value == "1" && name != "wait" }
        flags["wait"] == "0" ? begin_command(word, pairs) : outcome(*@monitor.command(word, pairs, PATIENCE))
      end

      # A refusal comes at once.
      def begin_command(word, pairs)
        done = Thread::Queue.new
        thread = Thread.new do
          Thread.current.report_on_exception = Thread.current.abort_on_exception = false
          done << @monitor.command(word, pairs, PATIENCE)
        rescue Monitor::Unavailable => e
          done << e
        end
        thread.join(BEGUN)
        return json(202, { "outcome" => "begun" }) if done.empty?

        answer = done.pop
        answer.is_a?(Exception) ? raise(answer) : outcome(*answer)
      end

      def outcome(word, pairs)
        return json(200, { "outcome" => "ok", "text" => pairs["text"] }) if word == "ok"

        json(409, { "outcome" => "failed", "error" => pairs["reason"] })
      end

      # The name alone turns a flag on.
      # @return [Hash{String => String, nil}] nil: the parameter is there several times
      def parameters(env)
        env["QUERY_STRING"].to_s.split("&").each_with_object({}) do |pair, all|
          name, value = pair.split("=", 2).map { |text| decoded(text) }
          value ||= FLAGS.include?(name) ? "1" : ""
          all[name.to_s] = (value unless all.key?(name.to_s))
        end
      end

      def decoded(text)
        text.to_s.tr("+", " ").b.gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding("UTF-8").scrub("?")
      end

      def json(status, object) = respond(status, "application/json", "#{JSON.generate(object)}\n")
      def text(status, text) = respond(status, "text/plain; charset=utf-8", text)

      def failure(status, reason, more = {})
        more = { **more, "www-authenticate" => "Bearer" } if status == 401
        json(status, { "error" => reason }).tap { |answer| answer[1].merge!(more) }
      end

      def respond(status, type, body)
        [status, { "content-type" => type, **HEADERS }, body.is_a?(String) ? [body] : body]
      end
    end
  end
end
