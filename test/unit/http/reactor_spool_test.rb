# frozen_string_literal: true

require "test_helper"
require "pando/http/reactor_spool"
require "tmpdir"
require_relative "support/fake_worker"

# Where the reactor keeps what is too large for memory.
class HTTPReactorSpoolTest < Minitest::Test
  include HTTPSupport::Events

  LINE = "36 35 %s / /place rw,noatime master:1 - %s source rw\n"

  def setup
    @folder = Dir.mktmpdir("pando")
    @mounts = "#{@folder}/mounts"
  end

  def teardown = FileUtils.remove_entry(@folder)

  def place(kind, path: @folder)
    status = File.stat(@folder)
    File.write(@mounts, format(LINE, "0:999", "proc") + format(LINE, "#{status.dev_major}:#{status.dev_minor}", kind))
    Pando::HTTP::ReactorSpool.new(path, mounts: @mounts)
  end

  def told(place) = events_of { place.warn }.map { |event| [event.name, event.payload.fetch(:path)] }

  def test_a_tmpfs_is_told_of
    assert_equal [["spool.in_memory", @folder]], told(place("tmpfs"))
  end

  # mountinfo(5) escapes blanks only.
  def test_a_name_that_is_not_utf8_is_no_obstacle
    spool = place("tmpfs")
    File.write(@mounts, "37 35 0:998 / /mnt/caf\xE9 rw - ext4 /dev/b\xFF rw\n#{File.read(@mounts)}")

    assert_equal [["spool.in_memory", @folder]], told(spool)
  end

  def test_nothing_is_said_of_a_disk
    assert_empty told(place("ext4"))
    refute_predicate place("ext4"), :memory?
  end

  def test_a_file_system_that_nobody_knows_counts_as_a_disk
    assert_empty told(Pando::HTTP::ReactorSpool.new(@folder, mounts: "#{@folder}/nowhere"))
  end

  def test_a_folder_that_cannot_be_written_is_told_of
    nowhere = "#{@folder}/nowhere"
    file = "#{@folder}/file".tap { |path| File.write(path, "") }

    { nowhere => /it does not exist/, file => /it is no directory/ }.each do |path, reason|
      event = events_of { place("ext4", path: path).warn }.fetch(0)

      assert_equal ["spool.unavailable", path], [event.name, event.payload.fetch(:path)]
      assert_match reason, event.payload.fetch(:reason)
      assert_match(/another one with `spool`/, event.payload.fetch(:advice))
    end
  end

  def test_the_default_is_the_temporary_folder
    assert_equal Dir.tmpdir, Pando::HTTP::ReactorSpool.new(nil).path
  end
end
