# frozen_string_literal: true

require "test_helper"
require "support/top_snapshot"

# What `pando top` shows of one answer of the server.
class TopBoardTest < Minitest::Test
  Board = Pando::CLI::Top::Board
  include Support::TopSnapshot

  def test_a_frame_of_80_by_24
    lines = board.lines(width: 80, height: 22, selected: 15, events: EVENTS)

    assert_equal(<<~TEXT, "#{lines.map(&:text).join("\n")}\n")
      pando 1.0, serving for 1 min 15 s: 3 of 3 workers ready, 2 reforks since the l..
      connections: 7, idle: 4; requests queued: 2, total: 900
      requests/s: 24.5 (2xx 20.0, 4xx 4.5)
      latency: duration p50 12 ms, p99 1500 ms; queue time p50 0.5 ms, p99 20.0 s
      memory: 75.0 MiB = private 27.0 MiB + shared 48.0 MiB; without sharing 300.0 MiB
      tcp:127.0.0.1:8080
      generation 2 is current (refork), 31 s old
      refork :auto is paying; now: a refork would pay at 900 requests
      PROCESS* GEN PID STATE   REQS REQ/S   PSS PRIVATE CONN DOING
      monitor       10 serving            10.0M    2.0M
      reactor       11 ready              11.0M    3.0M
      mold       2  12 ready              12.0M    4.0M
      worker 0   2  13 busy     400   4.0 13.0M    5.0M    2 2.5s +2 GET /reports
      worker 1   2  14 idle     500  20.5 14.0M    6.0M
      worker 2   2  15 busy       2   0.0 15.0M    7.0M      9.0s POST /imports
      EVENTS
      #{EVENTS.last(6).join("\n")}
    TEXT
    assert_equal(:title, lines.first.style)
    assert_equal(["worker 2"], lines.select { |line| line.style == :selected }.map { |line| line.text[0, 8] })
  end

  def test_no_line_is_longer_or_more_than_fit
    [[20, 5], [40, 10], [80, 24], [200, 60], [1, 1]].each do |width, height|
      lines = board.lines(width: width, height: height, selected: 14, events: EVENTS)

      assert_operator(lines.size, :<=, height)
      assert_empty(lines.map(&:text).reject { |text| text.size <= width })
    end
  end

  def test_columns_are_left_out_in_their_order
    shown = [80, 72, 64, 60, 55, 50, 44, 30].map { |width| heads(width) }

    assert_equal(%w[PROCESS* GEN PID STATE REQS REQ/S PSS PRIVATE CONN DOING], shown.first)
    assert_equal(%w[PROCESS* GEN PID STATE REQS REQ/S PSS PRIVATE DOING], shown[1])
    assert_equal(%w[PROCESS* DOING], shown.last)
    shown.each_cons(2) { |wide, narrow| assert_empty(narrow - wide) }
  end

  def test_the_table_is_sorted
    { "process" => [10, 11, 12, 13, 14, 15], "time" => [15, 13], "rate" => [14, 13, 15], "requests" => [14, 13, 15],
      "private" => [15, 14, 13], "pss" => [15, 14] }.each do |order, pids|
      assert_equal(pids, board.rows(order).first(pids.size).map { |_, pairs| pairs["pid"] }, order)
    end
    assert_includes(board.lines(order: "time")[8].text, " DOING*")
  end

  def test_bytes_of_clients_cannot_steer_the_terminal
    job = { "job" => "GET /\e[2J\r\n\u202E\x00é" }
    hostile = RECORDS.map { |word, pairs| [word, pairs["slot"] == 2 ? { **pairs, **job } : pairs] }
    lines = Board.new(hostile, RESULTS).lines(width: 200, height: 40, events: ["worker.lost \e]0;x\a"])
    text = lines.map(&:text).join

    assert_match(/\A[\x20-\x7e]*\z/, text)
    assert_includes(text, 'GET /\e[2J\r\n\u{202E}\x00?')
    refute_match(/[^\x20-\x7e]/, Board.new(hostile, RESULTS).details(15).map(&:text).join)
  end

  def test_the_selected_process_is_in_sight
    many = RECORDS + (100..160).map { |pid| ["worker", { "slot" => pid, "pid" => pid, "state" => "idle" }] }
    lines = Board.new(many, RESULTS).lines(width: 80, height: 24, selected: 150, events: EVENTS)

    assert_equal(1, lines.count { |line| line.style == :selected && line.text.include?("150") })
    assert_match(/EVENTS \(\d+ more processes: scroll\)/, lines.map(&:text).join("\n"))
    assert_operator(lines.count { |line| line.text.include?("worker.ready") }, :>=, 3)
  end

  def test_one_process_in_full
    text = board.details(13, events: ["12:00:00 worker.ready slot=0"]).map(&:text).join("\n")

    ["worker 0\n", "private        5.0 MiB", "job            GET /reports", "worker.ready slot=0"].each do |part|
      assert_includes(text, part)
    end
    assert_equal(["The process 99 has ended."], board.details(99).map(&:text))
  end

  def test_direct_mode_has_the_rates_of_its_workers
    records = RECORDS - RECORDS.select { |record| %w[responses queue].include?(record.first) }

    assert_includes(Board.new(records, RESULTS).lines.map(&:text), "requests/s: 24.5")
  end

  private

  def board = Board.new(RECORDS, RESULTS)
  def heads(width) = board.lines(width: width, height: 40).find { |line| line.text.start_with?("PROC") }.text.split
end
