# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"

module Support
  # A PostgreSQL server of its own, reached by a UNIX socket in its folder only. It refuses to run as root: there the
  # user that Debian's package makes runs it.
  class PostgreSQL
    USER = "postgres"
    # Nothing here is to survive a crash.
    OPTIONS = "-c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=30"
    START_WITHIN = 60 # seconds

    # @return [String, nil] why this machine cannot have it
    def self.obstacle
      return "PostgreSQL's server is not installed" unless binaries

      Etc.getpwnam(USER) if Process.uid.zero?
      nil
    rescue ArgumentError
      "there is no user #{USER} to run PostgreSQL"
    end

    # @return [String, nil] the newest version's folder
    def self.binaries
      Dir["/usr/lib/postgresql/*/bin"].select { |bin| File.executable?(File.join(bin, "initdb")) }
                                      .max_by { |bin| bin[/\d+/].to_i }
    end

    # @return [String] the folder of its socket: PGHOST
    attr_reader :folder

    # @param folder [String] a short path
    def initialize(folder)
      @folder = folder
      FileUtils.mkdir_p(folder)
      FileUtils.chown(USER, nil, folder) if Process.uid.zero?
    end

    # @return [self] once it takes connections
    def start
      run("initdb", "-D", data, "-U", "pando", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
      resume
    end

    # @return [self] with the data that it had when it was stopped, unless what it had not written yet is gone
    def resume
      run("pg_ctl", "start", "-w", "-t", START_WITHIN.to_s, "-D", data, "-l", File.join(@folder, "log"),
          "-o", "#{OPTIONS} -c unix_socket_directories='#{@folder}'")
      @running = true
      self
    end

    # @return [Array<Array<String>>] the rows that a query gives
    def rows(query)
      run("psql", "-h", @folder, "-U", "pando", "-d", "postgres", "-AtX", "-F", "\t", "-c", query)
        .lines(chomp: true).map { |line| line.split("\t") }
    end

    def stop
      run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data) if @running
      @running = false
    end

    private

    def data = File.join(@folder, "data")

    def run(name, *arguments)
      command = [File.join(self.class.binaries, name), *arguments]
      command = ["setpriv", "--reuid=#{USER}", "--regid=#{USER}", "--clear-groups", *command] if Process.uid.zero?
      # pg_ctl's server keeps what it inherits: a pipe would never end.
      output = File.join(@folder, "#{name}.out")
      Process.wait(Process.spawn(*command, chdir: @folder, in: File::NULL, out: output, err: %i[child out]))
      text = File.read(output)
      $?.success? ? text : raise("#{name}: #{text}") # rubocop:disable Style/SpecialGlobalVars
    end
  end
end
