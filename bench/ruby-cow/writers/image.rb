# frozen_string_literal: true

# The memory of a process, as proc(5) shows it.
class Image
  PAGE = 4096
  WORD = 8
  Mapping = Struct.new(:from, :to, :flags, :offset, :name)

  def initialize(pid)
    @pid = pid
    @memory = File.open("/proc/#{pid}/mem", "rb")
    @pagemap = File.open("/proc/#{pid}/pagemap", "rb")
  end

  def mappings
    @mappings ||= File.readlines("/proc/#{@pid}/maps").map do |line|
      range, flags, offset, _, _, name = line.split
      Mapping.new(*range.split("-").map(&:hex), flags, offset.hex, name.to_s)
    end
  end

  def executable = File.readlink("/proc/#{@pid}/exe")

  # @return [String, nil] nil: nothing is there
  def read(address, size)
    @memory.seek(address)
    @memory.read(size)
  rescue SystemCallError, RangeError
    nil
  end

  def words(address, count = PAGE / WORD) = read(address, count * WORD)&.unpack("Q*") || []

  # @return [Array<Integer>] the numbers of the kernel's pages, 0: none
  def frames(mapping)
    @pagemap.seek(mapping.from / PAGE * WORD)
    entries = @pagemap.read((mapping.to - mapping.from) / PAGE * WORD).to_s.unpack("Q*")
    entries.map { |entry| entry[63] == 1 ? entry & ((1 << 55) - 1) : 0 }
  end
end
