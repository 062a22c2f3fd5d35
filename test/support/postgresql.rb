# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"

module Support
  # A PostgreSQL server for one test, reachable only over a UNIX socket in its folder. It refuses to run as root, so
  # root runs it as the user from Debian's package.
  class PostgreSQL
    USER = "postgres"
    # Data need not survive a crash.
    OPTIONS = "-c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=30"
    START_WITHIN = 60 # seconds

    # @return [String, nil] why this machine does not support it
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

    # @return [self] once it accepts connections
    def start
      run("initdb", "-D", data, "-U", "pando", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
      resume
    end

    # @return [self] with the data from before the stop, except for what had not been written yet
    def resume
      run("pg_ctl", "start", "-w", "-t", START_WITHIN.to_s, "-D", data, "-l", File.join(@folder, "log"),
          "-o", "#{OPTIONS} -c unix_socket_directories='#{@folder}'")
      @running = true
      self
    end

    # @return [Array<Array<String>>] the rows of a query
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
      # The server that pg_ctl starts keeps inherited descriptors open, so a pipe would never end.
      output = File.join(@folder, "#{name}.out")
      Process.wait(Process.spawn(*command, chdir: @folder, in: File::NULL, out: output, err: %i[child out]))
      text = File.read(output)
      $?.success? ? text : raise("#{name}: #{text}") # rubocop:disable Style/SpecialGlobalVars
    end
  end
end
