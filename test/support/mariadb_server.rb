# frozen_string_literal: true

require "fileutils"
require_relative "local_server"

module Support
  # A MariaDB server for one test, reachable only over a UNIX socket in its folder. It needs no password, and starts
  # with only the database `test`.
  class MariaDBServer < LocalServer
    PROGRAM = "/usr/sbin/mariadbd"
    PACKAGE = "mariadb-server-core"
    # Data need not survive a crash.
    OPTIONS = %w[--no-defaults --skip-grant-tables --skip-networking --skip-log-bin --innodb-flush-log-at-trx-commit=0
                 --innodb-buffer-pool-size=16M].freeze

    # @param folder [String] a short path
    def initialize(folder) = super(folder, "mariadb")

    # @return [self] once it accepts connections
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

    private

    def data = File.join(@folder, "mariadb")

    # It refuses to run as root without this option.
    def user = Process.uid.zero? ? ["--user=root"] : []

    # It sends a greeting.
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
