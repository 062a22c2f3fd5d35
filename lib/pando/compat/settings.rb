# frozen_string_literal: true

require "pando/compat/collector_lines"
require "pando/compat/names"
require "pando/compat/solid_queue"
require "pando/compat/source"

module Pando
  module Compat
    # Translates each setting of Puma, Unicorn and Pitchfork to config/pando.rb.
    #
    # `pando init` uses it, by way of Translator.
    class Settings
      # The translation of a statement: its new text and a remark, or no text and the reason why it is left out.
      Result = Struct.new(:text, :remark) do
        def left_out? = text.nil?
      end

      # Settings that differ only in name, or not even in that.
      RENAMED = {
        "pid" => "pidfile", "pidfile" => "pidfile", "rackup" => "rackup",
        "spawn_timeout" => "spawn_timeout", **Names::RENAMED.transform_values(&:first)
      }.freeze

      # Settings that need more than a new name, and the method that translates them.
      SPECIAL = {
        "bind" => :bind, "bind_to_activated_sockets" => :systemd, "directory" => :directory,
        "early_hints" => :early_hints, "environment" => :environment,
        "force_shutdown_after" => :stop_timeout, "fork_worker" => :fork_worker, "listen" => :listen,
        "max_threads" => :threads, "plugin" => :plugin, "port" => :port, "set_remote_address" => :remote_address,
        "threads" => :threads, "timeout" => :timeout, "worker_processes" => :workers, "workers" => :workers
      }.freeze

      # In a worker, see the setting.
      MOST_THREADS = "64"
      # Options of a listener that Pando has as well.
      LISTEN_OPTIONS = %w[backlog umask mode tcp_nodelay].freeze
      # A literal count that may be 0.
      ZERO = /(?:[,{(]|\|\|)\s*["']?0["']?\s*[)}]|\A["']?0["']?\z|\|\|\s*["']?0["']?\z/
      LITERAL = /\A(["'])([^"'\\#]*)\1\z/
      OCTAL = /\A(?:0o?)?[0-7]+\z/
      private_constant :LISTEN_OPTIONS, :ZERO, :LITERAL, :OCTAL

      # The host that Puma listens on if only a port is given. In development, `bin/rails server` sets another host.
      HOST = "\#{environment == \"development\" ? \"127.0.0.1\" : \"0.0.0.0\"}"
      PROXY_PROTOCOL = "Write proxy_protocol: true behind the address of the listen line."
      FOLLOWED = "Pando follows #{SolidQueue::VARIABLE} by itself: a node runs the jobs unless it is empty, false, " \
                 "0, no or off.".freeze
      FOLLOWED_ENVIRONMENT = "Pando follows RAILS_ENV, RACK_ENV and APP_ENV by itself."
      IF_SET = /\A if #{SolidQueue::SET}\z/
      private_constant :IF_SET

      # @return [Boolean] whether it is the name of a setting of Puma, Unicorn or Pitchfork
      def self.known?(name) = RENAMED.key?(name) || SPECIAL.key?(name) || !Names.hint(name).nil?

      # @param values [Hash{String => String}] the source text that is assigned to each local variable of the file
      def initialize(values)
        @values = values
      end

      # @return [Result, nil] nil: it is not a setting
      def translate(statement)
        @statement = statement
        @arguments = statement.arguments
        name = statement.name
        return rename(name) if RENAMED.key?(name)
        return send(SPECIAL.fetch(name)) if SPECIAL.key?(name)

        hint = Names.hint(name)
        leave_out(hint) if hint
      end

      private

      def rename(name)
        return leave_out("The default is config.ru.") if @arguments == ["DefaultRackup"]
        return leave_out("It has no value.") if @arguments.empty?

        write(RENAMED.fetch(name), *@arguments)
      end

      # Adds a condition for an environment variable: if it is not set, the setting would have no value and the boot
      # would fail.
      def write(name, *arguments, remark: nil, value: (arguments.first if arguments.size == 1))
        asked = value&.[](/\AENV\[[^\[\]]+\]\z/)
        modifier = @statement.modifier || (" if #{asked}" if asked)
        Result.new("#{@statement.indent}#{[name, arguments.join(", ")].join(" ").rstrip}#{modifier}", remark)
      end

      def leave_out(reason) = Result.new(nil, reason)

      def port
        port, host = @arguments
        return leave_out("It has no port.") unless port

        host = host ? bracketed(inner(host)) : HOST
        write("listen", "\"#{host}:#{inner(port)}\"", value: port)
      end

      # The expression as part of a double-quoted string.
      def inner(expression)
        literal = LITERAL.match(expression)
        return literal[2] if literal

        expression.match?(/\A\d+\z/) ? expression : "\#{#{expression}}"
      end

      def bracketed(host) = host.include?(":") && !host.start_with?("[", "\#{") ? "[#{host}]" : host

      def bind
        address = @arguments.first or return leave_out("It has no address.")
        return leave_out(Names::NO_TLS) if address.match?(/\A["']ssl:/)

        address, query = without_query(address)
        options, wrong = query.partition { |pair| option(pair) }
        remark = "Without #{wrong.map(&:inspect).join(", ")}: Pando has no such option or value." if wrong.any?
        options = options.to_h { |pair| option(pair) }.sort.map { |name, value| "#{name}: #{value}" }
        write("listen", address.sub(%r{\A(["'])tcp://}, "\\1").sub(%r{\A(["'])unix://}, "\\1unix:"), *options,
              remark: remark)
      end

      # "unix:///tmp/web.sock?umask=0111&backlog=64". The query of any other expression stays: Pando reads it when it
      # reads the address.
      # @return [Array(String, Array<String>)] the address and the parts of its query
      def without_query(address)
        query = address[/\?([^"'?#]*)(["'])\z/, 1] if Source.statements(address)&.dig(0, 0) == :string_literal
        query ? [address.sub(/\?[^"'?]*(["'])\z/, "\\1"), query.split("&")] : [address, []]
      end

      # The value becomes a part of the new file, so it must be a literal.
      # @return [Array(String, Object), nil] Pando's name and the value as Ruby text; nil: Pando would refuse it
      def option(pair)
        name, _, value = pair.partition("=")
        case name
        when "umask", "mode" then [name, "0o#{value.to_i(8).to_s(8)}"] if value.match?(OCTAL)
        when "backlog" then [name, value.to_i] if value.match?(/\A\d+\z/)
        when "tcp_nodelay" then [name, value] if %w[true false].include?(value)
        when "low_latency" then ["tcp_nodelay", value != "false"]
        end
      end

      # Unicorn's `listen`: a path, a port, or HOST:PORT.
      def listen
        address, *options = @arguments
        return leave_out("It has no address.") unless address

        kept, rest = options.partition { |option| LISTEN_OPTIONS.include?(option[/\A:?(\w+)/, 1]) }
        remark = "Without #{rest.join(", ")}: Pando has no such option." if rest.any?
        write("listen", socket_path?(address) ? "\"unix:#{inner(address)}\"" : address, *kept, remark: remark)
      end

      def socket_path?(address)
        return false if address.match?(/\A["']unix:/)

        address.match?(%r{\A["'][/~.]}) || address.include?(".sock") || address.match?(/\AFile\./)
      end

      # Puma's line sets RACK_ENV, and RAILS_ENV decides for Rails all the same. Pando's line sets both.
      def environment
        name = @arguments.first or return leave_out("It has no value.")
        return leave_out(FOLLOWED_ENVIRONMENT) if Names.environment_followed?(@values.fetch(name, name))

        write("environment", *@arguments)
      end

      def directory = leave_out(Names::ON_THE_COMMAND_LINE)
      def systemd = write("listen", "\"systemd\"")
      def early_hints = write("early_hints", *(@arguments.empty? ? ["true"] : @arguments))

      def fork_worker
        @arguments.empty? ? write("refork", ":auto") : write("refork after:", "[#{@arguments.first}]")
      end

      # The `timeout` of Unicorn and Pitchfork; Puma has none.
      def timeout
        write("timeout", *@arguments.map { |argument| argument.sub(/\A(?:cleanup:|:cleanup\s*=>)/, "grace:") })
      end

      def stop_timeout
        return leave_out(Names.hint("force_shutdown_after")) unless @arguments.first&.match?(/\A[^:]/)

        write("stop_timeout", *@arguments)
      end

      def threads
        count = @arguments.last or return leave_out("It has no value.")
        return write("threads", MOST_THREADS, remark: "It is the most.") if count.to_i > MOST_THREADS.to_i

        write("threads", count, remark: ("All threads are there from the start." if @arguments.size > 1))
      end

      # With 0 workers, Puma serves in a single process, and Pando serves nothing.
      def workers
        count = @arguments.first or return leave_out("It has no value.")
        if count == "0"
          return write("workers", "1",
                       remark: "Puma's 0 is a single process. Without this line there is a worker for each CPU.")
        end
        return write("workers", count) unless (@values[count] || count).match?(ZERO)

        count = "#{count}.to_i" unless count.match?(/\.to_i\z|\AInteger\(.*\)\z/m)
        write("workers", "[#{count}, 1].max", remark: "Puma's 0 is a single process.")
      end

      def plugin
        name = @arguments.first.to_s.delete(":\"'")
        return solid_queue if name == "solid_queue"

        leave_out(Names.plugin(name))
      end

      def solid_queue
        return leave_out(FOLLOWED) if @statement.modifier&.match?(IF_SET)

        write(SolidQueue::LINE, remark: "It reads config/queue.yml and config/recurring.yml, as bin/jobs does.")
      end

      def remote_address
        return leave_out(PROXY_PROTOCOL) if @arguments.to_s.include?("proxy_protocol")

        leave_out("Write trusted_proxies [\"NETWORK\", ...]: X-Forwarded-For of those proxies is believed.")
      end
    end

    # Translates each hook of Puma, Unicorn and Pitchfork to config/pando.rb. The block keeps its text.
    #
    # `pando init` uses it, by way of Translator.
    class Blocks
      Result = Settings::Result

      # Pando's name for the hook, what its block receives (:index as in Puma, :pair for a server and a worker, :none),
      # and a remark.
      Hook = Struct.new(:name, :gives, :remark)

      EACH_FORK = "This runs before each fork, in the process that is forked, and not once at the start."
      MONITOR = "This runs in the monitor, which never loads the application."
      WORKER = Hook.new("after_worker_fork", :index)
      EXIT = Hook.new("before_worker_exit", :index)
      FORK = Hook.new("before_fork", :none, EACH_FORK)
      READY = Hook.new("after_monitor_ready", :none, MONITOR)
      EXITED = Hook.new("after_worker_exit", :none, MONITOR)

      PUMA = {
        "on_worker_boot" => WORKER, "before_worker_boot" => WORKER, "on_thread_start" => WORKER,
        "before_thread_start" => WORKER, "on_worker_shutdown" => EXIT, "before_worker_shutdown" => EXIT,
        "on_thread_exit" => EXIT, "before_thread_exit" => EXIT, "before_fork" => FORK, "on_worker_fork" => FORK,
        "before_worker_fork" => FORK, "on_refork" => FORK, "before_refork" => FORK, "on_booted" => READY,
        "after_booted" => READY, "after_worker_shutdown" => EXITED
      }.freeze

      UNICORN = {
        "before_fork" => Hook.new("before_fork", :pair, EACH_FORK),
        "after_fork" => Hook.new("after_worker_fork", :pair),
        "before_worker_fork" => Hook.new("before_fork", :pair, EACH_FORK), "after_monitor_ready" => READY,
        **%w[after_mold_fork after_worker_fork after_worker_ready before_worker_exit after_worker_exit
             after_worker_timeout after_worker_hard_timeout after_request_complete]
                .to_h { |name| [name, Hook.new(name, :pair)] }
      }.freeze

      DATA = "Puma's data for this block has no equal."
      VALUES = "The block's values have no equal: it is called once for each fork."
      KILLER = /PumaWorkerKiller|puma_worker_killer/
      UNICORN_SERVER = /\bserver\.\w/
      private_constant :DATA, :VALUES, :KILLER, :UNICORN_SERVER

      def initialize(dialect, scope)
        @dialect = dialect
        @hooks = dialect == :puma ? PUMA : UNICORN
        @scope = scope
      end

      # @return [Result, nil] nil: it is not a hook
      def translate(statement)
        return Result.new(nil, Names::NO_MASTER) if @dialect == :puma && statement.name == "after_worker_fork"

        hook = @hooks[statement.name] or return
        collector = CollectorLines.new(statement, hook.name)
        reason = collector.rest ? obstacle(statement, hook) : collector.reason
        return Result.new(nil, reason) if reason

        Result.new(write(Statement.new(collector.rest), hook), remark(hook, collector.reason))
      end

      private

      def remark(hook, without)
        remarks = [hook.remark, *("Without the lines for the garbage collector: #{without}" if without)].compact
        remarks.join(" ") if remarks.any?
      end

      def obstacle(statement, hook)
        block = statement.block
        return "Its block is made elsewhere: write it here." unless block
        return "It needs Puma: memory worker: 512.mb replaces a worker that has grown." if block.match?(KILLER)

        reason = foreign_values(statement, hook)
        return reason if reason
        return "Pando's server has other methods." if @dialect == :unicorn && block.match?(UNICORN_SERVER)

        @scope.trouble(statement.body) if hook.remark == MONITOR
      end

      # @return [String, nil] the reason, if the block uses a value that Pando does not give it
      def foreign_values(statement, hook)
        return DATA if hook.gives == :index && statement.arguments.any?
        return unless statement.parameters.drop(values(hook)).any? { |parameter| used?(parameter, statement.block) }
        return DATA if hook.gives == :index

        hook == EXITED ? Names.hint(statement.name) : VALUES
      end

      # How many values are the same in Pando. Pando does not know a worker before it is forked.
      def values(hook)
        case hook.gives
        when :none then 0
        when :index then 1
        else hook.name == "before_fork" ? 1 : 3
        end
      end

      # A parameter may be several names in parentheses.
      def used?(parameter, block)
        parameter.scan(/[a-z_]\w*/).any? { |name| block.scan(/\b#{name}\b/).size > 1 }
      end

      def write(statement, hook)
        index = statement.parameters.first if hook.gives == :index
        text = statement.rewrite(hook.name, parameters: index && ["_server", "worker", "#{index} = worker.slot"])
        hook.gives == :pair ? text.gsub(/\bworker\.nr\b/, "worker.slot") : text
      end
    end
  end
end
