# frozen_string_literal: true

require "fileutils"
require "socket"

module Support
  # A RabbitMQ server for one test, with its own node name, folders, ports and Erlang port mapper. Durable data survive
  # a stop and a start.
  class RabbitMQServer
    include Ports
    include Waiting

    HOME = Dir["/usr/lib/rabbitmq/lib/rabbitmq_server-*"].max
    PORT_MAPPER = Dir["/usr/lib/erlang/erts-*/bin/epmd"].max
    # Makes Erlang's virtual machine small and quiet, without DNS lookups.
    MACHINE = "+S 1:1 +A 2 +sbwt none -start_epmd false"
    START_WITHIN = 120 # seconds, because it starts a virtual machine

    # @return [String, nil] why this machine does not support it
    def self.obstacle
      "rabbitmq-server is not installed" unless HOME && PORT_MAPPER
    end

    # @return [Integer]
    attr_reader :port

    # @param folder [String]
    def initialize(folder)
      @folder = folder
      FileUtils.mkdir_p(folder)
      @port, @mapper_port, @node_port = Array.new(3) { free_port }
      write("plugins", "[].\n")
      write("rabbitmq.conf", "loopback_users = none\n")
      write("inetrc", "{lookup, [file]}.\n{host, {127,0,0,1}, [\"localhost\"]}.\n")
    end

    def url = "amqp://guest:guest@127.0.0.1:#{@port}"

    # @return [self] at once: it is ready only after some seconds
    def start
      @mapper ||= Process.spawn(environment, PORT_MAPPER, "-port", @mapper_port.to_s, "-address", "127.0.0.1",
                                **output("epmd.log"))
      @pid = Process.spawn(environment, File.join(HOME, "sbin/rabbitmq-server"), "-noinput", chdir: @folder,
                                                                                             **output("rabbitmq.log"))
      self
    end

    # @return [self] once it accepts connections
    def wait
      wait_until(timeout: START_WITHIN, message: lambda {
        "rabbitmq-server: #{File.read(path("rabbitmq.log"))}"
      }) { greets? }
      self
    end

    # Stops it. Durable data stay.
    # @param signal [String]
    def stop(signal = "KILL")
      end_process(@pid, signal)
      @pid = nil
    end

    # Stops it and removes its data.
    def shut
      stop
      end_process(@mapper, "KILL")
      @mapper = nil
    end

    private

    # Names that its scripts and settings use.
    def environment
      {
        "HOME" => @folder, "ERL_EPMD_PORT" => @mapper_port.to_s, "ERL_EPMD_ADDRESS" => "127.0.0.1",
        "ERL_INETRC" => path("inetrc"), "RABBITMQ_NODENAME" => "pando-#{@port}@localhost",
        "RABBITMQ_NODE_PORT" => @port.to_s, "RABBITMQ_NODE_IP_ADDRESS" => "127.0.0.1",
        "RABBITMQ_DIST_PORT" => @node_port.to_s, "RABBITMQ_MNESIA_BASE" => path("mnesia"),
        "RABBITMQ_LOG_BASE" => @folder, "RABBITMQ_LOGS" => "-", "RABBITMQ_ENABLED_PLUGINS_FILE" => path("plugins"),
        "RABBITMQ_CONF_ENV_FILE" => File::NULL, "RABBITMQ_CONFIG_FILE" => path("rabbitmq.conf"),
        "RABBITMQ_CONFIG_FILES" => path("conf.d"), "RABBITMQ_ADVANCED_CONFIG_FILE" => path("advanced.config"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS" => MACHINE,
        "RABBITMQ_ALLOW_INPUT" => "1" # so that the script execs the server
      }
    end

    def path(name) = File.join(@folder, name)
    def write(name, text) = File.write(path(name), text)
    def output(name) = { in: File::NULL, out: [path(name), "a"], err: %i[child out] }

    def greets?
      socket = TCPSocket.new("127.0.0.1", @port)
      socket.write("AMQP\x00\x00\x09\x01")
      !socket.readpartial(1).empty?
    rescue SystemCallError, EOFError
      false
    ensure
      socket&.close
    end

    def end_process(pid, signal)
      return unless pid

      Process.kill(signal, pid)
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end
  end
end
