# frozen_string_literal: true

# pando swarm -c examples/swarm/swarm.rb
#
# Three nodes that do two jobs each at a time. A job is a file in inbox/: put it there with mv, so that nobody sees half
# of it. It is in done/ when it is done.

node(:folder, count: 3, concurrency: 2, require: "./folder_runner.rb") do |node|
  FolderRunner.new(node, "inbox", "done") do |name, text|
    puts "#{name}: #{text.split.size} words"
  end
end

refork after: [500, 2000]
