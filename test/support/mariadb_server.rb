# frozen_string_literal: true

require "fileutils"

module Support
  # A MariaDB server of its own, reached by a UNIX socket in its folder only. It asks nobody for a password, and starts
  # with nothing but the database `test`.
  class MariaDBServer
    include Waiting

    PROGRAM = "/usr/sbin/mariadbd"
    # Nothing here is to survive a crash.
    OPTIONS = %w[--no-defaults --skip-grant-tables --skip-networking --skip-log-bin --innodb-flush-log-at-trx-commit=0
                 --innodb-buffer-pool-size=16M].freeze

    # @return [String, nil] why this machine cannot have it
    def self.obstacle
      "mariadb-server-core is not installed" unless File.executable?(PROGRAM)
    end

    # @return [String]
    attr_reader :socket_path

    # @param folder [String] a short path
    def initialize(folder)
      @folder = folder
      @socket_path = File.join(folder, "mariadb.sock")
      @log = File.join(folder, "mariadb.log")
    end

    # @return [self] once it takes connections
    def start
      FileUtils.mkdir_p(data)
      first = File.join(@folder, "first.sql")
      File.write(first, "CREATE DATABASE test;\n")
      @pid = Process.spawn(PROGRAM, *OPTIONS, *user, "--datadir=#{data}", "--socket=#{@socket_path}",
                           "--pid-file=#{File.join(@folder, "mariadb.pid")}", "--init-file=#{first}",
                           in: File::NULL, out: @log, err: %i[child out])
      wait_until(message: -> { "mariadbd: #{File.read(@log)}" }) { reachable? }
      self
    end

    def stop
      return unless @pid

      Process.kill("KILL", @pid)
      Process.wait(@pid)
      @pid = nil
    end

    private

    def data = File.join(@folder, "mariadb")

    # It refuses to run as root unless it is told to.
    def user = Process.uid.zero? ? ["--user=root"] : []

    # It greets.
    def reachable?
      socket = UNIXSocket.new(@socket_path)
      !socket.readpartial(1).empty?
    rescue SystemCallError, EOFError
      false
    ensure
      socket&.close
    end
  end
end
