# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/fork_safety"
require "support/in_child"

# Libraries that replace an inherited connection by themselves are told from those that do not.
class AuditForkAwareTest < Minitest::Test
  include Support::InChild

  Audit = Pando::ForkSafety::Audit
  # As redis-client keeps its socket, two objects away.
  Buffered = Struct.new(:nothing) { def initialize(io) = @io = io }
  Connection = Struct.new(:nothing) { def initialize(io) = @buffered = Buffered.new(io) }
  Client = Struct.new(:nothing) { def initialize(io) = @connection = Connection.new(io) }

  def setup
    @server = TCPServer.new("127.0.0.1", 0)
    @socket = TCPSocket.new("127.0.0.1", @server.addr[1])
  end

  def teardown
    [@server, @socket].each(&:close)
  end

  # Other tests may have left connections open.
  def ours?(finding) = finding.kind == :shared_socket && finding.message.include?(@server.addr[1].to_s)

  def test_a_connection_that_its_library_will_replace_is_worth_a_note
    answer = in_child do
      Object.const_set(:RedisClient, Client)
      client = Client.new(@socket)
      Audit.census
      found = in_child { Audit.run(forks: false).findings.select { |one| ours?(one) }.map(&:to_h) }
      found if client
    end

    assert_equal(["note"], answer.map { |one| one[:severity] })
    assert_match(/redis-client/, answer.first[:message])
  end

  # As mini_mime keeps its database.
  def test_a_file_that_its_library_reads_by_offset_is_worth_a_note
    answer = File.open(__FILE__) do |file|
      file.readline
      in_child { severities_of(file) }
    end

    assert_equal([["warning"], ["note"]], answer)
  end

  def test_any_other_is_not
    holder = Client.new(@socket)

    assert_nil(Audit::ForkAware.library([@socket]))
    assert_nil(Audit::ForkAware.library([]))
    refute_nil(holder)
  end

  private

  # First as a version does that moves the position, then as one that does not.
  def severities_of(file)
    db = Object.const_set(:MiniMime, Module.new).const_set(:Db, Module.new)
    holder = db.const_set(:RandomAccessDb, Buffered).new(file)
    found = [severities]
    db.const_set(:PReadFile, File)
    found.push(severities) if holder
  end

  def severities
    found = Audit.run(forks: true).findings.select { |one| one.message.include?(File.basename(__FILE__)) }
    found.map { |one| one.severity.to_s }
  end
end
